"""The program that grades a kernel inside a sandbox, under any Python 3.

It reads a job as JSON, and writes a verdict as JSON. The kernel runs in a process of
its own that may compute, allocate and read files, and nothing else. Right answers, the
clock and the random numbers are in this process, whose memory nobody else may read.
"""

import ctypes
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import time

import confine

PR_SET_DUMPABLE = 4
LIBC = ctypes.CDLL(None, use_errno=True)
POISON = b"\xff"
PATIENCE_S = 20.0


def main():
    """Grade the kernel of the job that stands on standard input."""
    job = json.load(sys.stdin)
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if os.uname().machine not in confine.ALLOWED:
        return say({"error": f"no filter for {os.uname().machine}"})
    judge = Judge(job)
    try:
        say(judge.grade())
    except Fault as fault:
        say({"accused": [str(fault)]})
    return 0


def say(verdict):
    """Write the one line that is read."""
    print(json.dumps(verdict), flush=True)


class Fault(Exception):
    """What a kernel is accused of, in one word."""


class Judge:
    """Makes inputs, keeps right answers, and lets workers call kernels."""

    def __init__(self, job):
        self.job, self.seed = job, int.from_bytes(os.urandom(7), "big")
        self.c = ctypes.CDLL(os.path.abspath("judge.so"))
        self.c.fill.argtypes = [
            ctypes.c_void_p,
            ctypes.c_long,
            ctypes.c_uint64,
            ctypes.c_float,
            ctypes.c_float,
        ]
        self.c.error.restype = ctypes.c_double
        self.c.error.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_long,
            ctypes.c_long,
            ctypes.c_int,
            ctypes.c_double,
        ]
        os.unlink("judge.so")
        # Before any code of an agent has run, so that none could change them.
        rows, cols = job["timed"]
        self.plain = Worker("./reference", rows, cols)
        self.copy = Worker("./copy", rows, cols)
        os.unlink("reference")
        os.unlink("copy")

    def grade(self):
        """All probes, then the times."""
        worst = 0.0
        for rows, cols in self.job["shapes"]:
            worst = max(worst, self.probe(rows, cols))
        self.special()
        self.narrow()
        self.repeated()
        seconds = self.timed()
        return {"accused": [], "error_relative": worst, "seconds": seconds}

    def probe(self, rows, cols):
        """Random values of one shape."""
        with Worker("./kernel", rows, cols) as worker:
            self.random(worker)
            worker.call()
            return self.right(worker, "wrong")

    def special(self):
        """NaN, infinities, zeros, tiny and large values, each in a row of its own."""
        values = self.job["special"]
        with Worker("./kernel", 2 * len(values) + 1, 67) as worker:
            self.random(worker)
            for row, some in enumerate(values):
                for place, value in enumerate(some):
                    worker.input[2 * row * 67 + (13 * place + 5) % 67] = value
            worker.call()
            self.right(worker, "special")

    def narrow(self):
        """One large value among many small ones: a narrow sum forgets them."""
        with Worker("./kernel", 5, 1031) as worker:
            self.random(worker)
            large, small = self.job["narrow"]
            for i in range(5 * 1031):
                worker.input[i] = small
            worker.input[7] = worker.input[1031 * 3] = large
            worker.call()
            self.right(worker, "precision")

    def repeated(self):
        """The same memory, with the same, one changed and all changed values."""
        with Worker("./kernel", 37, 129) as worker:
            self.random(worker)
            before = [bytes(worker.input)]
            for fault in ("wrong", "no_op", "no_op"):
                worker.call()
                self.right(worker, fault)
            for change in (37 * 129 // 2, 37 * 129 - 60, 5):
                worker.input[change] += 1.5
                worker.call()
                self.right(worker, "caching", before)
                before.append(bytes(worker.input))
            self.random(worker)
            worker.call()
            self.right(worker, "caching", before)

    def timed(self):
        """Seconds of the kernel, of the reference and of a copy, taken in turn.

        Each call has values that were never seen before, and is checked in full.
        """
        seconds, before = {"kernel": [], "plain": [], "copy": []}, []
        with Worker("./kernel", *self.job["timed"]) as worker:
            turns = {"kernel": worker, "plain": self.plain, "copy": self.copy}
            for each in turns.values():
                self.random(each)
                each.call()
            for _ in range(self.job["rounds"]):
                for name, each in turns.items():
                    self.random(each)
                    seconds[name].append(each.call())
                self.right(worker, "replay", before)
                before = [*before[:1], bytes(worker.input)]
        return seconds

    def random(self, worker):
        """Fresh input: values, and the weights behind them."""
        size = worker.rows * worker.cols
        address = ctypes.addressof(worker.input)
        for at, count, name in ((0, size, "values"), (size, worker.cols, "weights")):
            self.seed += 1
            low, high = self.job[name]
            self.c.fill(address + 4 * at, count, self.seed, low, high)

    def right(self, worker, fault, before=()):
        """The error of a call; a Fault where it is too large.

        What is right for an input that was there before is named for that; a small
        error of random values is one of precision.
        """
        found = self.error(worker, worker.input)
        if 0 <= found <= self.job["tolerance"]:
            return found
        for old in before:
            given = type(worker.input).from_buffer_copy(old)
            if 0 <= self.error(worker, given) <= self.job["tolerance"]:
                raise Fault(fault)
        if fault == "wrong" and 0 <= found <= self.job["narrow_error"]:
            raise Fault("precision")
        raise Fault("wrong" if before else fault)

    def error(self, worker, given):
        """The largest error of what a worker wrote, for this input."""
        op, constant = self.job["op"], self.job["constant"]
        x, y = ctypes.addressof(given), ctypes.addressof(worker.output)
        return self.c.error(x, y, worker.rows, worker.cols, op, constant)


class Worker:
    """A process with one kernel and memory that it shares with this one.

    `input` is private: what a kernel does to the shared copy changes no judgement.
    """

    def __init__(self, program, rows, cols):
        self.rows, self.cols = rows, cols
        self.input = (ctypes.c_float * (rows * cols + cols))()
        self.shared, x = shared(ctypes.sizeof(self.input))
        self.guarded, y = shared(4 * rows * cols)
        self.output = (ctypes.c_float * (rows * cols)).from_buffer(self.guarded)
        self.process = subprocess.Popen(
            [program, x, y, str(rows), str(cols)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=confine.confine,
            close_fds=False,
            env={},
            bufsize=0,
        )
        self.paths = (x, y)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for path in self.paths:
            os.path.exists(path) and os.unlink(path)

    def call(self):
        """Poison the output, call the kernel on the input, and return the seconds.

        All others stand still before and after: nothing is done ahead or behind, and
        its own processor time, read from outside, is all that it took.
        """
        standstill()
        ctypes.memmove(
            (ctypes.c_char * len(self.shared)).from_buffer(self.shared),
            self.input,
            len(self.shared),
        )
        ctypes.memset(self.output, POISON[0], ctypes.sizeof(self.output))
        clock = (~self.process.pid << 3) | 2
        begun = time.clock_gettime(clock)
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(b"x")
        except OSError:
            raise Fault("crashed") from None
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            raise Fault("late")
        ended = self.process.stdout.read(1)
        standstill()
        if not ended:
            raise Fault("crashed")
        stopped = os.waitpid(self.process.pid, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(stopped):
            raise Fault("crashed")
        return time.clock_gettime(clock) - begun


def standstill():
    """Stop everything else in this sandbox but its first process."""
    try:
        os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError:
        return


def shared(size):
    """Memory in a file of its own, and the file's path."""
    path = f"memory-{os.urandom(6).hex()}"
    with open(path, "w+b") as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size), path


if __name__ == "__main__":
    sys.exit(main())
