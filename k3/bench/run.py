"""The rounds of a benchmark: everything in turn, so that a busy minute hits all."""

import os
import platform
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from k3 import errors
from k3.bench.floors import Floors
from k3.bench.memory import Memory
from k3.bench.report import Figure, Report
from k3.bench.work import WARM_STEPS, Setting, Work
from k3.kernels import choose
from k3.kernels.native import library
from k3.model import Model, stored


@torch.inference_mode()
def run(
    model: Model, setting: Setting, *, name: str, memory: Memory | None = None
) -> Report:
    """Time a model that is loaded on the CPU; `memory` adds its figures."""
    _check(model, setting)
    with _threads(setting.threads):
        work, floors = Work(model, setting), Floors(model, setting.clock)
        timed: dict[str, Callable[[], float]] = {
            f"prefill of {setting.tokens}": work.prefill,
            f"first token of {setting.tokens}": work.first_token,
        }
        steps = {_decode_name(setting, b): b for b in work.starts}
        for label, batch in steps.items():
            timed[label] = partial(work.decode, batch)
        work.prefill()
        times: dict[str, list[float]] = {label: [] for label in timed}
        for _ in range(setting.rounds):
            floors.measure()
            for label, once in timed.items():
                times[label].append(once())
    figures = _figures(setting, times, steps, floors)
    if memory is not None:
        figures += _sizes(memory)
    return Report(
        settings=_settings(model, setting, name),
        context=_context(floors),
        figures=tuple(figures),
    )


def kernels() -> str:
    """Which kernels run on a CPU now."""
    return f"native ({library.level()})" if choose.ready() else "torch"


def _figures(
    setting: Setting,
    times: dict[str, list[float]],
    steps: dict[str, int],
    floors: Floors,
) -> list[Figure]:
    prompt = floors.prompt(setting.tokens)
    figures = []
    for label, found in times.items():
        if label in steps:
            figures.append(_rate(label, steps[label], found, floors.step(steps[label])))
        elif label.startswith("prefill"):
            figures.append(_rate(label, setting.tokens, found, prompt))
        else:
            low, high = min(found), max(found)
            middle = statistics.median(found)
            figures.append(
                Figure(
                    name=label,
                    unit="s",
                    median=middle,
                    low=low,
                    high=high,
                    floor=prompt,
                )
            )
    return figures


def _rate(name: str, tokens: int, times: list[float], floor_s: float) -> Figure:
    return Figure(
        name=name,
        unit="tok/s",
        median=tokens / statistics.median(times),
        low=tokens / max(times),
        high=tokens / min(times),
        floor=tokens / floor_s,
    )


def _sizes(memory: Memory) -> list[Figure]:
    """All that is resident, then what is not pages of files."""
    return [
        _size("memory loaded", memory.loaded, memory.weights),
        _size("memory at work", memory.peak, memory.floor),
        _size("private loaded", memory.private_loaded, memory.weights),
        _size("private at work", memory.private_peak, memory.floor),
    ]


def _size(name: str, found: int, floor: int) -> Figure:
    value = float(found)
    return Figure(
        name=name, unit="bytes", median=value, low=value, high=value, floor=float(floor)
    )


def _decode_name(setting: Setting, batch: int) -> str:
    return f"decode of {batch} after {setting.context}"


def _settings(model: Model, setting: Setting, name: str) -> dict[str, Any]:
    """What two runs must share to be compared."""
    packed = any(".w1_packed" in key for key, _ in model.named_buffers())
    counts = asdict(setting) | {"batches": list(setting.batches)}
    del counts["rounds"]
    parameters = sum(x.numel() for x in model.state_dict().values())
    return counts | {
        "model": Path(name).name,
        "stored_numbers": parameters,
        "dtype": str(model.dtype).removeprefix("torch."),
        "experts": "packed" if packed else "dequantized",
        **({"weights": "stored"} if any(stored.names(model)) else {}),
    }


def _context(floors: Floors) -> dict[str, Any]:
    """What a reader wants to know of the run."""
    return {
        "kernels": kernels(),
        "read_bytes_per_s": floors.bytes_per_s,
        "operations_per_s": floors.flops_per_s,
        "active_bytes": floors.num_bytes,
        "active_operations": floors.operations,
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def _check(model: Model, setting: Setting) -> None:
    if model.device.type != "cpu":
        raise errors.RequestError(
            f"k3 bench times a CPU: the model is on {model.device}; load it on the cpu"
        )
    longest = max(setting.tokens, setting.context + setting.steps + WARM_STEPS)
    most = model.config.text.max_position_embeddings
    if longest > most:
        raise errors.RequestError(
            f"a run must fit max_position_embeddings {most}: got {longest} tokens; "
            "give a smaller --tokens or --context"
        )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
