"""How long a local sandbox takes to be made, run, kept, resumed, forked and paused.

    python benchmarks/sandbox.py [--rounds 40] [--out FILE.json]

Each round takes all acts in turn, on a sandbox with 50 files of 4 KB and one of 1 MB,
of which 5 change between two checkpoints. Prints count, median, p90, p99 and the
largest time in milliseconds. Wall-clock time: the load average stands beside it.
"""

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from k3.envs.local import LocalBackend
from k3.envs.sandbox import MIB, Limits
from k3.envs.store import Store

LIMITS = Limits(seconds=60.0, disk_bytes=16 * MIB)
ACTS = (
    "create",
    "run true",
    "checkpoint, all new",
    "checkpoint, 5 files changed",
    "resume from a checkpoint",
    "fork",
    "pause",
    "continue",
    "destroy",
)


def files(round_: int) -> dict[str, bytes]:
    """What is in the sandbox: no two rounds share a file."""
    rng = np.random.default_rng(round_)
    made = {f"src/{i}.bin": rng.bytes(4096) for i in range(50)}
    return made | {"big.bin": rng.bytes(MIB)}


def play(backend: LocalBackend, round_: int, timed: Callable) -> None:
    """One round of all acts."""
    with timed("create"):
        box = backend.create(files(round_), limits=LIMITS)
    with timed("run true"):
        box.run(["true"])
    with timed("checkpoint, all new"):
        box.checkpoint()
    for path, data in list(files(round_ + 10**6).items())[:5]:
        box.write(path, data)
    with timed("checkpoint, 5 files changed"):
        kept = box.checkpoint()
    with timed("resume from a checkpoint"):
        again = backend.create(start=kept)
    with timed("fork"):
        other = box.fork()
    with timed("pause"):
        box.pause()
    with timed("continue"):
        box.resume()
    again.destroy()
    other.destroy()
    with timed("destroy"):
        box.destroy()


def row(name: str, seconds: list[float]) -> str:
    """One row of the table."""
    ms = 1e3 * np.array(seconds)
    high = [np.percentile(ms, p) for p in (50, 90, 99)]
    return (
        f"| {name} | {len(ms)} | "
        + " | ".join(f"{v:.1f}" for v in (*high, ms.max()))
        + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    seconds: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        seconds[name].append(time.perf_counter() - begun)

    with tempfile.TemporaryDirectory() as folder:
        backend = LocalBackend(Store(folder))
        for round_ in range(args.rounds):
            play(backend, round_, timed)
        written = backend.store.written_bytes
    print(f"load average {os.getloadavg()[0]:.1f}; store {written / 1e6:.0f} MB\n")
    print(
        "| act | count | median ms | p90 | p99 | largest |\n|---|---|---|---|---|---|"
    )
    for name in ACTS:
        print(row(name, seconds[name]))
    if args.out is not None:
        args.out.write_text(json.dumps(seconds))


if __name__ == "__main__":
    main()
