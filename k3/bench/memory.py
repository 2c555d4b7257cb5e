"""Resident memory of one model at work, beyond a bare import of torch.

Measured in a process of its own, which has imported nothing else before. Some of it is
pages of files, the code of torch above all: they are clean, all processes share them,
and they give way to whoever needs memory. What is private is the model's alone.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from k3 import errors
from k3.bench import floors
from k3.checkpoint.load import load

STATUS = Path("/proc/self/status")
CHILD = """
import sys, torch

before = open("/proc/self/status").read()
from k3.bench import memory

memory.main(before, sys.argv[1:])
"""
STEPS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes: resident after loading and at the peak of a run; what must be held.

    Of the private part the system keeps no peak: it is the peak's less the pages of
    files that are there in the end.
    """

    loaded: int
    peak: int
    private_loaded: int
    private_peak: int
    weights: int
    cache: int

    @property
    def floor(self) -> int:
        """Weights and the cache of one sequence."""
        return self.weights + self.cache


def measure(
    path: Path, *, dtype: str, experts: str, weights: str, threads: int, tokens: int
) -> Memory | None:
    """Load in a new process, run a prompt and a few steps; None without /proc.

    Raises: what `k3.load` raises, as if it had been called here.
    """
    if not STATUS.exists():
        return None
    words = [str(path), dtype, experts, weights, str(threads), str(tokens)]
    command = [sys.executable, "-c", CHILD, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    if "refused" in found:
        raise getattr(errors, found["refused"])(found["why"])
    return Memory(**found)


def status(key: str, text: str | None = None) -> int:
    """A size of this process in bytes: VmRSS now, VmHWM at its highest."""
    lines = (text or STATUS.read_text()).splitlines()
    return next(1024 * int(x.split()[1]) for x in lines if x.startswith(key))


def _shared(text: str | None = None) -> int:
    """Bytes of resident pages that belong to files."""
    return status("RssFile", text) + status("RssShmem", text)


def work(before: str, words: list[str]) -> Memory:
    """What the new process does; `before` is its status after a bare import."""
    bare, files = status("VmRSS", before), _shared(before)
    path, dtype, experts, weights, threads, tokens = words
    torch.set_num_threads(int(threads))
    model = load(
        Path(path), dtype=getattr(torch, dtype), experts=experts, weights=weights
    )
    loaded, mapped = status("VmRSS") - bare, _shared() - files
    ids = torch.arange(int(tokens)).remainder(model.config.text.vocab_size)[None]
    with torch.inference_mode():
        logits, state = model(ids, state=model.init_state(1), logits="last")
        for _ in range(STEPS):
            logits, state = model.step(logits[:, -1].argmax(-1, keepdim=True), state)
    peak = status("VmHWM") - bare
    return Memory(
        loaded=loaded,
        peak=peak,
        private_loaded=loaded - mapped,
        private_peak=peak - (_shared() - files),
        weights=floors.held_bytes(model),
        cache=state.nbytes,
    )


def main(before: str, words: list[str]) -> None:
    """Print what was found as one JSON object, or why nothing could be."""
    try:
        found = asdict(work(before, words))
    except errors.K3Error as error:
        found = {"refused": type(error).__name__, "why": str(error)}
    print(json.dumps(found))
