"""Local sandboxes: they run, pause, fork and come back; and nothing gets out."""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from k3.envs import bubblewrap
from k3.envs.local import LocalBackend
from k3.envs.sandbox import MIB, Limits
from k3.envs.store import Store
from k3.errors import RequestError

LIMITS = Limits(seconds=6.0, disk_bytes=4 * MIB, processes=24, output_bytes=20_000)


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    return LocalBackend(Store(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def box(backend):
    made = backend.create({"a.txt": b"hello", "d/x.py": b"print(6 * 7)"}, limits=LIMITS)
    yield made
    made.destroy()


def sh(box, text, **options):
    return box.run(["bash", "-c", text], **options)


def test_it_runs_reads_and_writes(box):
    ran = sh(box, "cat a.txt; cat >&2; exit 3", stdin=b"to stderr")
    assert (ran.code, ran.stdout, ran.stderr) == (3, b"hello", b"to stderr")
    assert sh(box, "python3 d/x.py").text == "42\n"
    assert sh(box, "echo $NAME", env={"NAME": "x y"}).text == "x y\n"
    box.write("new/deep/file", b"\0\xff")
    assert box.read("new/deep/file") == b"\0\xff"
    assert box.run(["no-such-program"]).code == 127
    assert box.transcript[-1].argv == ("no-such-program",)


@pytest.mark.parametrize("path", ["nothing", "d", "/dev/zero"])
def test_what_is_no_file_is_a_sentence(box, path):
    with pytest.raises(RequestError, match="no regular file"):
        box.read(path)


@pytest.mark.parametrize("path", ["pipe", "/proc/self/fd/4", "/proc/self/comm"])
def test_what_is_no_file_is_not_written(backend, path):
    made = backend.create(limits=LIMITS)
    sh(made, "mkfifo pipe")
    with pytest.raises(RequestError, match=f"could not write {path}"):
        # The fourth is the program's own pipe to the host: a forged answer.
        made.write(path, b"\xff" * 16)
    assert made.run(["echo", "on"]).text == "on\n"
    made.destroy()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("mkdir d; touch d/f; chmod 0 d", "Permission denied: /work/d"),
        ("truncate -s 100G hole", "more bytes than the limit: /work/hole"),
    ],
)
def test_a_copy_is_whole_and_bounded_or_refused(backend, made, said):
    box = backend.create(limits=LIMITS)
    sh(box, made)
    for copy in (box.fork, box.checkpoint):
        with pytest.raises(RequestError, match=said):
            copy()
    box.destroy()


def test_what_is_left_running_is_bounded_too(backend):
    box = backend.create(limits=LIMITS)
    later = "sleep 0.3; for i in $(seq 60); do sleep 50 & done; wait"
    assert sh(box, f"({later}) > /dev/null 2>&1 &").code == 0
    time.sleep(1.0)
    count = "import os; print(sum(n.isdigit() for n in os.listdir('/proc')))"
    assert int(box.run(["python3", "-c", count]).text) < LIMITS.processes
    box.destroy()


def test_a_fork_judges_without_side_effects(box):
    ran = len(box.transcript)
    judge = box.fork()
    assert judge.transcript == box.transcript
    sh(judge, "rm -rf a.txt d; echo changed > new; ln -s /etc loop")
    judge.destroy()
    assert box.read("a.txt") == b"hello"
    assert sh(box, "ls new loop 2>/dev/null; true").text in (
        "",
        "deep\n",
        "new:\ndeep\n",
    )
    assert len(box.transcript) == ran + 1


def test_a_crash_goes_on_from_the_last_checkpoint(backend):
    made = backend.create({"kept": b"1"}, limits=LIMITS)
    sh(made, "mkdir -m 500 shut; ln -s kept link; printf x > run.sh; chmod 751 run.sh")
    saved = made.checkpoint()
    sh(made, "echo lost > kept")
    made._process.kill()
    with pytest.raises(RequestError, match="must be alive"):
        made.run(["true"])
    assert not made.alive
    again = backend.create(start=saved)
    assert sh(again, "cat link; stat -c '%a %F' shut run.sh").text == (
        "1500 directory\n751 regular file\n"
    )
    assert [r.argv for r in again.transcript[:-1]] == [r.argv for r in saved.transcript]
    again.destroy()


def test_paused_processes_stand_still_and_no_time_runs(backend):
    made = backend.create(limits=Limits(seconds=2.0))
    script = (
        "import time\n"
        "for i in range(40): print(i, file=open('log', 'a')); time.sleep(0.02)"
    )
    results = []
    thread = threading.Thread(
        target=lambda: results.append(made.run(["python3", "-c", script]))
    )
    thread.start()
    while made.run(["test", "-s", "log"]).code != 0:
        time.sleep(0.01)
    made.pause()
    first = made.read("log")
    time.sleep(2.2)
    assert made.read("log") == first
    made.resume()
    thread.join()
    assert (results[0].code, results[0].limit) == (0, "")
    assert made.read("log").split()[-1] == b"39"
    made.destroy()


def commands():
    """The command lines of all processes of this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


def test_destroyed_is_destroyed(backend):
    made = backend.create(limits=LIMITS)
    sh(made, "setsid sleep 4321 & disown")
    made.destroy()
    made.destroy()
    deadline = time.monotonic() + 20
    while any(b"4321" in line for line in commands()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for call in (made.checkpoint, made.pause, lambda: made.read("a")):
        with pytest.raises(RequestError, match="must be alive"):
            call()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"memory_bytes": 1}, "memory_bytes must be at least"),
        ({"processes": 1}, "processes must be at least 2: got 1"),
        ({"seconds": 0}, "seconds must be above 0"),
    ],
)
def test_limits_that_let_nothing_run_are_refused(options, sentence):
    with pytest.raises(RequestError, match=sentence):
        Limits(**options)


@pytest.fixture
def uncached():
    bubblewrap.check.cache_clear()
    yield
    bubblewrap.check.cache_clear()


def test_without_bubblewrap_it_refuses(tmp_path, monkeypatch, uncached):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequestError, match="needs bubblewrap: got no bwrap"):
        LocalBackend(Store(tmp_path / "store"))


def test_without_user_namespaces_it_refuses(tmp_path, monkeypatch, uncached):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho no permission >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(
        RequestError, match="needs user namespaces: got 'no permission'"
    ):
        LocalBackend(Store(tmp_path / "store"))


# 34 ways out or over: each ends inside, and the sandbox still answers afterwards.
LIMITED = {
    "fork_bomb": ("bomb() { bomb | bomb & }; bomb; sleep 60", "processes"),
    "processes_that_hide": (
        "for i in $(seq 60); do setsid sleep 100 & done; sleep 60",
        "processes",
    ),
    "sleep_forever": ("trap '' TERM INT; sleep 1000", "seconds"),
    "spin": ("while :; do :; done", "seconds"),
    "flood": ("yes", "output"),
    "flood_errors": ("yes >&2", "output"),
    "many_files": ("mkdir d; cd d; seq 200000 | xargs touch; sleep 60", "files"),
}
REFUSED = {
    "disk_fill": "head -c 9000000 /dev/zero > big",
    "disk_fill_in_tmp": "head -c 9000000 /dev/zero > /tmp/big",
    "disk_fill_in_dev": "head -c 9000000 /dev/zero > /dev/big",
    "disk_fill_in_shm": "head -c 9000000 /dev/zero > /dev/shm/big",
    "memory": "python3 -c 'bytearray(10**9)'",
    "threads": (
        "python3 -c 'import threading, time\n"
        "for i in range(3000): threading.Thread(target=time.sleep, args=(9,), "
        "daemon=True).start()'"
    ),
    "network": "exec 3<>/dev/tcp/127.0.0.1/$PORT",
    "outside_network": "exec 3<>/dev/tcp/192.0.2.1/80",
    "read_secret": "cat /etc/shadow",
    "read_home": "cat $SECRET",
    "path_traversal": "cat ../../../../../..$SECRET",
    "symlink_out": "ln -sf $SECRET link && cat link",
    "symlink_of_a_folder": "ln -s / root; cat root$SECRET",
    "hard_link": "ln $SECRET hard && cat hard",
    "root_of_a_process": "cat /proc/1/root$SECRET || cat /proc/1/cwd/../..$SECRET",
    "write_system": "touch /usr/bin/x || touch /x",
    "signal_host": "kill -9 $HOSTPID",
    "signal_first": "kill -9 1; sleep 0.1; test ! -e /proc/1/status",
    "read_the_pipe": "cat /proc/1/fd/0",
    "forge_an_answer": "echo forged > /proc/1/fd/1",
    "write_its_memory": "echo x > /proc/1/mem",
    "setuid": "cp /bin/bash sh; chown 0 sh; chmod u+s sh; ./sh -p -c 'test $EUID = 0'",
    "become_root": "python3 -c 'import os; os.setuid(0)'",
    "mount": "mount -t tmpfs none /mnt",
    "new_namespace": "unshare -Ur true",
    "device": "head -c 1 /dev/mem || mknod sda b 8 0",
    "hostname": "hostname changed",
    "open_files": "python3 -c 'f = [open(\"/dev/null\") for i in range(5000)]'",
}


@pytest.mark.parametrize("name", LIMITED)
def test_over_a_limit_it_is_ended_by_name(backend, name):
    text, limit = LIMITED[name]
    limits = Limits(seconds=1.5, processes=24, output_bytes=20_000)
    if limit == "files":
        limits = Limits(seconds=60.0, disk_bytes=4 * MIB)
    made = backend.create(limits=limits)
    ran = sh(made, text)
    assert (ran.limit, ran.code) == (limit, -9)
    assert len(ran.stdout) <= 20_000
    assert made.run(["echo", "on"]).text == "on\n"
    made.destroy()


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """What an attempt is after: a listening port, a secret file, a host process."""
    secret = tmp_path_factory.mktemp("host") / "secret"
    secret.write_text("secret")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(["sleep", "1000"]) as process,
    ):
        port = server.getsockname()[1]
        names = {"PORT": str(port), "SECRET": str(secret), "HOSTPID": str(process.pid)}
        yield names
        alive = process.poll() is None
        process.kill()
    assert alive, "an attempt has reached a process of the host"


@pytest.mark.parametrize("name", REFUSED)
def test_an_escape_fails_inside(box, outside, name):
    ran = sh(box, REFUSED[name], env=outside)
    assert ran.code != 0, (ran.stdout, ran.stderr)
    assert b"secret" not in ran.stdout
    assert box.run(["echo", "on"]).text == "on\n"
    sh(box, "rm -rf big /tmp/big /dev/shm/big link root hard sh")
