"""Processes behind a router: started, killed, started again, ended with it."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from k3.errors import RequestError
from k3.serve import replicas

# A replica of the standard library: it says its process id, and ends when asked to.
SERVER = """
import http.server, os, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(str(os.getpid()).encode())
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def command(port):
    return [sys.executable, "-S", "-c", SERVER, str(port)]


async def until(condition):
    for _ in range(400):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


def test_a_killed_replica_is_replaced_and_all_end_with_the_router(monkeypatch):
    monkeypatch.setattr(replicas, "FIRST_PAUSE", 0.05)
    fleet = replicas.Fleet([replicas.Process(str(i), command) for i in range(2)])
    made = replicas.app(fleet, check_seconds=0.05)
    pool = fleet.pool

    async def check():
        async with made.router.lifespan_context(made):
            await until(lambda: len(pool.loads()) == 2)
            transport = httpx.ASGITransport(made)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://r"
            ) as to:
                first = int((await to.get("/v1/models")).text)
                before = [p.pid for p in fleet.processes]
                assert first in before
                os.kill(first, signal.SIGKILL)
                second = int((await to.get("/v1/models")).text)
                assert second in before
                assert second != first
            await until(lambda: len(pool.loads()) == 2)
            now = [p.pid for p in fleet.processes]
            assert None not in now
            assert len(set(now) & set(before)) == 1
            assert pool.counts["process_restarts"] == 1
            return now

    left = asyncio.run(asyncio.wait_for(check(), 60))
    for pid in left:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_replica_that_keeps_dying_is_started_ever_more_rarely():
    process = replicas.Process("a", lambda port: [sys.executable, "-S", "-c", ""])
    started = []
    for now in range(100):
        if process.tend(float(now)):
            started.append(now)
            process.end(5.0)
    assert started == [0, 1, 3, 7, 15, 31, 61, 91]


def test_one_that_does_not_end_is_killed():
    code = "import signal,time;signal.signal(15, signal.SIG_IGN);print(1,flush=True);"
    process = replicas.Process(
        "a", lambda port: [sys.executable, "-S", "-c", code + "time.sleep(60)"]
    )
    process.start()
    time.sleep(0.3)
    process.terminate()
    process.end(0.05)
    assert not process.alive
    assert process.pid is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a parent's death is told on Linux")
def test_replicas_do_not_outlive_a_router_that_was_killed():
    code = (
        "from k3.serve import replicas; import sys, time;"
        "p = replicas.Process('a', lambda port: ['sleep', '60']); p.start();"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    router = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert router.stdout is not None
    with router, router.stdout:
        pid = int(router.stdout.readline())
        router.kill()
        router.wait()
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}/exe") or not os.readlink(
            f"/proc/{pid}/exe"
        ):
            break
        time.sleep(0.05)
    else:
        raise AssertionError("it lives on")


def test_the_command_of_a_replica_and_what_is_refused():
    fleet = replicas.fleet(["tiny", "--max-num-seqs", "4"], 3)
    first = fleet.processes[0]
    assert [p.name for p in fleet.processes] == ["0", "1", "2"]
    assert len({p.port for p in fleet.processes}) == 3
    wanted = ["-m", "k3", "serve", "tiny", "--max-num-seqs", "4"]
    place = ["--host", "127.0.0.1", "--port", str(first.port)]
    assert first.command(first.port) == [sys.executable, *wanted, *place]
    with pytest.raises(RequestError, match="replicas must be at least 1: got 0"):
        replicas.fleet([], 0)
