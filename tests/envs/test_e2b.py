"""The E2B client against a loopback service: the same interface as a local sandbox."""

import os
import shutil

import pytest
from e2b_service import KEY, serving

from k3.envs import connect
from k3.envs.e2b import E2BBackend
from k3.envs.local import LocalBackend
from k3.envs.sandbox import Limits, Sandbox
from k3.envs.store import Store
from k3.errors import RequestError


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    local = LocalBackend(Store(tmp_path_factory.mktemp("store")))
    with serving(local) as (address, holds):
        yield address, holds


def client(address, key=KEY, template="base"):
    return E2BBackend(address, key, address + "/envd/{id}", template)


@pytest.fixture(scope="module")
def backend(service):
    made = client(service[0])
    yield made
    made.close()


def test_it_runs_forks_pauses_and_ends_as_a_local_one_does(service, backend):
    box = backend.create({"a/b.txt": b"one\0two"}, limits=Limits(seconds=5))
    assert isinstance(box, Sandbox)
    assert box.read("a/b.txt") == b"one\0two"
    ran = box.run(
        ["bash", "-c", "cat; echo $X >&2; exit 3"], stdin=b"in", env={"X": "y"}
    )
    assert (ran.code, ran.stdout, ran.stderr, ran.limit) == (3, b"in", b"y\n", "")
    assert box.run(["true"]).code == 0
    box.pause()
    box.resume()
    judge = box.fork()
    assert judge.transcript == box.transcript
    judge.write("a/b.txt", b"other")
    judge.destroy()
    assert box.read("a/b.txt") == b"one\0two"
    saved = box.checkpoint()
    box.destroy()
    box.destroy()
    assert not box.alive
    assert service[1].boxes == {}
    again = backend.create(start=saved)
    assert again.read("a/b.txt") == b"one\0two"
    assert len(again.transcript) == 2
    again.destroy()


def test_limits_are_named(backend):
    box = backend.create(limits=Limits(seconds=1.0, output_bytes=100))
    ran = box.run(["sleep", "60"])
    assert (ran.code, ran.limit) == (-9, "seconds")
    ran = box.run(["bash", "-c", "seq 200"])
    assert (ran.limit, len(ran.stdout)) == ("output", 100)
    box.destroy()


def test_refusals_carry_the_services_words(service, backend):
    for made, sentence in (
        (client(service[0], key="wrong"), r"401 .*no such key"),
        (client(service[0], template="none"), r"404 .*no such template"),
        (client("http://127.0.0.1:9"), "a sandbox service must answer"),
    ):
        with pytest.raises(RequestError, match=sentence):
            made.create()
        made.close()
    box = backend.create()
    with pytest.raises(RequestError, match="no regular file: gone"):
        box.read("gone")
    box.destroy()


def test_a_stream_is_read_in_any_pieces_and_must_end():
    sent = connect.envelope({"a": 1}) + connect.envelope({"b": 2})
    whole = sent + connect.envelope({}, 2)
    for size in (1, 3, 100):
        pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
        assert list(connect.messages(pieces)) == [{"a": 1}, {"b": 2}]
    with pytest.raises(RequestError, match="ends with its last message: got 0 bytes"):
        list(connect.messages([sent]))
    refused = connect.envelope({"error": {"code": "not_found", "message": "x"}}, 2)
    with pytest.raises(connect.Refused, match="not_found") as caught:
        list(connect.messages([refused]))
    assert caught.value.code == "not_found"
