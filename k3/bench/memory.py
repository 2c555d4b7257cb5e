"""Resident memory of one model at work, beyond a bare import of torch.

Measured in a process of its own, which has imported nothing else before.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from k3.bench import floors
from k3.checkpoint.load import load

STATUS = Path("/proc/self/status")
CHILD = """
import sys, torch

before = [x for x in open("/proc/self/status") if x.startswith("VmRSS")]
from k3.bench import memory

memory.main(1024 * int(before[0].split()[1]), sys.argv[1:])
"""
STEPS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes: resident after loading and at the peak of a run; what must be held."""

    loaded: int
    peak: int
    weights: int
    cache: int

    @property
    def floor(self) -> int:
        """Weights and the cache of one sequence."""
        return self.weights + self.cache


def measure(
    path: Path, *, dtype: str, experts: str, threads: int, tokens: int
) -> Memory | None:
    """Load in a new process, run a prompt and a few steps; None without /proc."""
    if not STATUS.exists():
        return None
    words = [str(path), dtype, experts, str(threads), str(tokens)]
    command = [sys.executable, "-c", CHILD, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Memory(**json.loads(done.stdout))


def status(key: str) -> int:
    """A size of this process in bytes: VmRSS now, VmHWM at its highest."""
    lines = STATUS.read_text().splitlines()
    return next(1024 * int(x.split()[1]) for x in lines if x.startswith(key))


def work(before: int, words: list[str]) -> Memory:
    """What the new process does."""
    torch.set_num_threads(int(words[3]))
    model = load(Path(words[0]), dtype=getattr(torch, words[1]), experts=words[2])
    loaded = status("VmRSS")
    ids = torch.arange(int(words[4])).remainder(model.config.text.vocab_size)[None]
    with torch.inference_mode():
        logits, state = model(ids, state=model.init_state(1), logits="last")
        for _ in range(STEPS):
            logits, state = model.step(logits[:, -1].argmax(-1, keepdim=True), state)
    return Memory(
        loaded=loaded - before,
        peak=status("VmHWM") - before,
        weights=floors.held_bytes(model),
        cache=state.nbytes,
    )


def main(before: int, words: list[str]) -> None:
    """Print what was found as one JSON object."""
    print(json.dumps(asdict(work(before, words))))
