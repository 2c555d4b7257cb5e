"""One saver at a time: who is refused, what a dead saver leaves, whose files stay."""

import os
import subprocess
import sys
import threading

import pytest

from k3.checkpoint import lock
from k3.checkpoint.convert import convert
from k3.checkpoint.load import load
from k3.checkpoint.save import save
from k3.errors import CheckpointError

RULE = "one save at a time writes a directory: .* by process"
HOLDER = """
import sys, pathlib
from k3.checkpoint import lock
with lock.held(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that is writing tmp_path."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_and_touches_nothing(tiny, tmp_path, holder):
    theirs = lock.temporary(tmp_path, "model-00001-of-000001.safetensors")
    theirs.write_bytes(b"half")
    with pytest.raises(CheckpointError, match=f"{RULE} {holder.pid}; wait for it"):
        save(load(tiny), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {lock.LOCK, theirs.name}
    with pytest.raises(CheckpointError, match="is not empty"):
        convert(tiny, tmp_path)


def test_convert_is_refused_while_another_begins(tiny, tmp_path, holder):
    with pytest.raises(CheckpointError, match=f"{RULE} {holder.pid}"):
        convert(tiny, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [lock.LOCK]


def test_the_lock_and_files_of_a_killed_saver_are_nobodys(tiny, tmp_path, holder):
    for name in ("model-00001-of-000002.safetensors", "model.safetensors.index.json"):
        lock.temporary(tmp_path, name).write_bytes(b"half")
    holder.kill()
    holder.wait()
    assert (tmp_path / lock.LOCK).exists()
    save(load(tiny), tmp_path)
    assert not [path.name for path in tmp_path.iterdir() if "saving" in path.name]


def test_a_lock_file_with_a_living_number_is_no_lock(tiny, tmp_path):
    """Numbers of processes come again; only the lock itself counts."""
    (tmp_path / lock.LOCK).write_text(str(os.getppid()))
    save(load(tiny), tmp_path)
    load(tmp_path)


def test_a_second_thread_is_refused(tiny, tmp_path):
    begun, go, model = threading.Event(), threading.Event(), load(tiny)

    def slow(done, total):
        begun.set()
        go.wait(20)

    first = threading.Thread(
        target=save, args=(model, tmp_path), kwargs={"progress": slow}
    )
    first.start()
    begun.wait(20)
    try:
        with pytest.raises(CheckpointError, match=f"{RULE} {os.getpid()}"):
            save(model, tmp_path)
    finally:
        go.set()
        first.join()
    assert load(tmp_path).config == model.config


def test_savers_at_once_leave_one_checkpoint(tiny, tmp_path):
    """Whoever is refused is told; the others leave a whole checkpoint of one."""
    model, refused = load(tiny), []

    def one():
        try:
            save(model, tmp_path, max_shard_bytes=300_000)
        except CheckpointError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) < 6
    assert all("one save at a time" in line for line in refused)
    load(tmp_path)
    assert not [path.name for path in tmp_path.iterdir() if "saving" in path.name]


def test_temporary_names_differ(tmp_path):
    names = {lock.temporary(tmp_path, "x").name for _ in range(50)}
    assert len(names) == 50
    assert all(str(os.getpid()) in name and name.startswith(".x.") for name in names)


def test_a_refused_save_frees_the_directory(tmp_path):
    with pytest.raises(RuntimeError), lock.held(tmp_path):
        raise RuntimeError
    with lock.held(tmp_path):
        assert (tmp_path / lock.LOCK).read_text() == str(os.getpid())
    assert list(tmp_path.iterdir()) == []
