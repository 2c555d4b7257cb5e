"""What the system refuses is one sentence; the standard streams may be anything."""

import errno
import json
import os
import subprocess
import sys

import pytest

K3 = f"{sys.executable} -m k3"


def shell(command, **environment):
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_what_the_system_refuses_is_one_sentence(k3, monkeypatch, number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), "some/file")

    monkeypatch.setattr(
        "k3.cli.app.get_command", lambda _: type("", (), {"main": fail})
    )
    found = k3("env", "--json")
    sentence = f"cannot read or write some/file: {os.strerror(number)}"
    assert found.code == 2
    assert found.json["ok"] is False
    assert sentence in found.json["error"]
    assert found.err.startswith(f"k3: {sentence}")
    assert found.err.count("\n") == 1


# Two verbs that need no torch: little output, which fails when it is flushed, and more
# than a buffer, which fails in the verb; and more than a pipe holds.
LITTLE, MUCH = "data list --json", "prove --article --json"
MORE = "generate -p a --max-tokens 8 --logprobs 500 --json"


@pytest.mark.parametrize("verb", ["--version", LITTLE, "inspect tiny --json"])
def test_a_full_disk_under_standard_output(verb):
    done = shell(f"{K3} {verb} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith(b"k3: cannot read or write standard output")
    assert done.stderr.count(b"\n") == 1


GENERATE = "generate --max-tokens 1 --json"


@pytest.mark.parametrize(
    ("verb", "closed"),
    [
        (LITTLE, ">&-"),
        (LITTLE, "2>&-"),
        # Without -p a prompt is looked for in standard input.
        (GENERATE, "<&-"),
        (GENERATE, "<&- >&- 2>&-"),
    ],
)
def test_closed_streams_are_no_error(verb, closed):
    done = shell(f"{K3} {verb} {closed}")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("verb", [LITTLE, MORE])
def test_a_reader_that_leaves_early_is_no_error(verb):
    done = shell(f"set -o pipefail; {K3} {verb} | head -c 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{", b"")


@pytest.mark.parametrize("verb", [LITTLE, MUCH])
def test_a_reader_that_was_never_there_is_no_error(verb):
    done = shell(f"set -o pipefail; {K3} {verb} | true")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "encoding",
    ["utf-8:strict", "ascii:strict", pytest.param("latin-1", marks=pytest.mark.slow)],
)
def test_text_that_standard_output_cannot_encode(encoding):
    command = f"{K3} generate --max-tokens 1 -p $'a\\xff\\u4e2d' --json"
    done = shell(command, PYTHONIOENCODING=encoding, LC_ALL="C.UTF-8")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.decode(encoding.partition(":")[0]))
    assert found["completions"][0]["prompt"] == "a\udcff\u4e2d"
    plain = shell(
        f"{K3} generate --max-tokens 1 -p $'a\\xff' -p b",
        PYTHONIOENCODING=encoding,
        LC_ALL="C.UTF-8",
    )
    assert plain.returncode == 0, plain.stderr
    assert b"== a\\udcff" in plain.stdout


def test_a_file_in_place_of_a_directory(k3, tmp_path):
    (tmp_path / "f").touch()
    for verb in (("convert", "tiny"), ("train", "--out")):
        done = k3(*verb, f"{tmp_path}/f/x")
        assert done.code == 2
        assert "Traceback" not in done.err
        assert "Not a directory" in done.err
