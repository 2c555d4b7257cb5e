"""The program that stays inside a local sandbox and does what the host asks.

It is sent as text and runs under any Python 3 without packages. Frames on its
standard input and output: eight bytes of length, a JSON header, its `data` after it.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time

import inside_files
from inside_files import FOLDERS, WORK

PR_SET_DUMPABLE = 4
CHECK_SECONDS = 0.02
OWN: set = set()
PAUSED = threading.Event()
GUARD = threading.Lock()


def main():
    """Answer frames until the host closes the pipe."""
    # Nobody else here may read this process's memory or write to its pipes.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    source, sink = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.chdir(WORK)
    lock = threading.Lock()

    def answer(number, header, data=b""):
        with lock:
            send(sink, header | {"id": number}, data)

    while True:
        header, data = receive(source)
        if header is None:
            return
        worker = threading.Thread(target=serve, args=(header, data, answer))
        worker.daemon = True
        worker.start()


def serve(header, data, answer):
    """Do one request; an error is an answer too."""
    try:
        answer(header["id"], *DO[header["do"]](header, data))
    except OSError as error:
        answer(header["id"], {"error": f"{error.strerror}: {error.filename}"})
    except Exception as error:
        answer(header["id"], {"error": repr(error)})


def run(header, data):
    """Run a command in a session of its own, within its limits."""
    began, limits = time.monotonic(), header["limits"]
    environment = {"HOME": WORK, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        header["argv"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=WORK,
        env=environment | header["env"],
        start_new_session=True,
        preexec_fn=lambda: bound(limits),
    )
    OWN.add(process.pid)
    parts, over = [bytearray(), bytearray()], []
    readers = [
        threading.Thread(target=drain, args=(pipe, part, limits["output_bytes"], over))
        for pipe, part in zip((process.stdout, process.stderr), parts, strict=True)
    ]
    readers.append(threading.Thread(target=feed, args=(process.stdin, data)))
    for thread in readers:
        thread.daemon = True
        thread.start()
    limit = watch(process, began + limits["seconds"], limits, over)
    if limit:
        everyone(signal.SIGKILL)
    process.wait()
    OWN.discard(process.pid)
    for thread in readers:
        thread.join(1.0)
    sizes = [len(part) for part in parts]
    made = {"code": process.returncode, "limit": limit, "sizes": sizes}
    made["seconds"] = time.monotonic() - began
    if count() and not GUARD.locked():
        threading.Thread(target=guard, args=(limits,), daemon=True).start()
    return made, bytes(parts[0] + parts[1])


def bound(limits):
    """Set what the kernel itself refuses; cores are never written."""
    most = limits["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    cpu = int(limits["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))


def watch(process, end, limits, over):
    """Wait for a command; return what it went over, if anything."""
    now = time.monotonic()
    while True:
        before, now = now, time.monotonic()
        if PAUSED.is_set():
            end += now - before
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(CHECK_SECONDS)
            return "output" if over else ""
        if over:
            return "output"
        if now > end:
            return "seconds"
        if count() > limits["processes"]:
            return "processes"
        if any(files(folder) > limits["files"] for folder in FOLDERS):
            return "files"


def guard(limits):
    """Bound what a command has left running, until nothing of it is."""
    with GUARD:
        while left := count():
            # While a command runs it is watched itself, and told its limit.
            if left > limits["processes"] and not OWN:
                everyone(signal.SIGKILL)
            time.sleep(CHECK_SECONDS)


def files(folder):
    """How many there are on a file system, empty ones too."""
    found = os.statvfs(folder)
    return found.f_files - found.f_ffree


def count():
    """Processes in here beside this one; orphans that have ended are buried."""
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            found += not buried(int(name))
    return found


def buried(number):
    """Whether a process has ended; it is waited for if nobody else will."""
    try:
        with open(f"/proc/{number}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except OSError:
        return True
    if state == "Z" and parent == "1" and number not in OWN:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(number, os.WNOHANG)
    return state == "Z"


def everyone(number):
    """Signal all processes but this one, which is the first."""
    for _ in range(100):
        try:
            os.kill(-1, number)
        except ProcessLookupError:
            return
        if number != signal.SIGKILL or not count():
            return
        time.sleep(0.001)


def drain(pipe, part, most, over):
    """Read a pipe to its end; what is over the limit is dropped and noted."""
    while True:
        piece = os.read(pipe.fileno(), 65536)
        if not piece:
            return
        part.extend(piece[: most - len(part)])
        if len(part) >= most and not over:
            over.append(True)


def feed(pipe, data):
    """Write a command's input; it may end without reading it."""
    with contextlib.suppress(OSError):
        pipe.write(data)
        pipe.close()


def stop(header, data):
    """Stop or continue all processes; while they stand, no time limit runs."""
    (PAUSED.set if header["stop"] else PAUSED.clear)()
    everyone(signal.SIGSTOP if header["stop"] else signal.SIGCONT)
    return {}, b""


DO = {
    "run": run,
    "read": inside_files.read,
    "write": inside_files.write,
    "tree": inside_files.tree,
    "restore": inside_files.restore,
    "stop": stop,
}


def send(sink, header, data):
    """Write one frame."""
    text = json.dumps(header | {"size": len(data)}).encode()
    frame = struct.pack(">Q", len(text)) + text + data
    while frame:
        frame = frame[os.write(sink, frame) :]


def receive(source):
    """Read one frame; a header of None at the end."""
    head = exactly(source, 8)
    if len(head) < 8:
        return None, b""
    header = json.loads(exactly(source, struct.unpack(">Q", head)[0]))
    return header, exactly(source, header["size"])


def exactly(source, size):
    """Read so many bytes, or what there is until the end."""
    parts = []
    while size:
        piece = os.read(source, min(size, 1 << 20))
        if not piece:
            break
        parts.append(piece)
        size -= len(piece)
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit(main())
