"""Where kernels are compiled and graded: a sandbox for each, prepared once."""

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from importlib import resources
from typing import Any

from k3.envs.kernels import operations, verdict
from k3.envs.kernels.operations import Operation
from k3.envs.kernels.verdict import Verdict
from k3.envs.sandbox import MIB, Backend, Checkpoint, Limits, Ran, Sandbox
from k3.errors import RequestError

LIMITS = Limits(memory_bytes=1024 * MIB, disk_bytes=128 * MIB, seconds=120.0)
SHAPES = ((1, 1), (3, 1), (1, 17), (5, 129), (7, 1023), (63, 100))
TIMED = (1024, 2048)
ROUNDS = 9
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-w")


class Bench:
    """Grades kernels of any operation; what is trusted is compiled once for each.

    Raises: RequestError where there is no C compiler.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        timed: tuple[int, int] = TIMED,
        rounds: int = ROUNDS,
    ) -> None:
        self._backend, self._compiler = backend, compiler()
        self._timed, self._rounds = timed, rounds
        self._prepared: dict[tuple[int, float], Checkpoint] = {}

    def grade(self, source: str, operation: Operation, constant: float) -> Verdict:
        """Compile a kernel and grade it; nothing of it is left."""
        ready = self._ready(operation, constant)
        box = self._backend.create({"kernel.c": source.encode()}, start=ready)
        try:
            ran = self._compile(box, "kernel", "kernel.c", "worker.c")
            if ran.code:
                said = ran.stderr.decode(errors="replace")[:1000]
                return Verdict(error=f"it does not compile: {said}")
            found = self._graded(box, self._job(operation, constant))
            return dataclasses.replace(found, share=operation.share)
        finally:
            box.destroy()

    def _graded(self, box: Sandbox, given: Mapping[str, Any]) -> Verdict:
        ran = box.run(
            ["python3", "-I", "-S", "-c", _program()], stdin=json.dumps(given).encode()
        )
        try:
            found = json.loads(ran.stdout)
        except ValueError:
            why = ran.limit or ran.stderr.decode(errors="replace")[-300:]
            return Verdict(error=f"it ended the grader: {why}")
        return Verdict(
            accused=tuple(found.get("accused", ())),
            error=found.get("error", ""),
            error_relative=found.get("error_relative", 0.0),
            seconds=found.get("seconds", {}),
        )

    def _ready(self, operation: Operation, constant: float) -> Checkpoint:
        """A sandbox with judge, reference and copy; their sources are gone."""
        key = (operation.number, constant)
        if key not in self._prepared:
            files = {
                "judge.c": _file("judge.c"),
                "worker.c": _file("worker.c"),
                "reference.c": operations.reference(operation, constant).encode(),
                "copy.c": operations.copy().encode(),
            }
            box = self._backend.create(files, limits=LIMITS)
            try:
                for ran in (
                    self._compile(box, "judge.so", "-shared", "-fPIC", "judge.c"),
                    self._compile(box, "reference", "reference.c", "worker.c"),
                    self._compile(box, "copy", "copy.c", "worker.c"),
                    box.run(["rm", "judge.c", "reference.c", "copy.c"]),
                ):
                    assert ran.code == 0, ran.stderr
                self._prepared[key] = box.checkpoint()
            finally:
                box.destroy()
        return self._prepared[key]

    def _job(self, operation: Operation, constant: float) -> dict[str, Any]:
        """What the grader is told."""
        return {
            "op": operation.number,
            "constant": constant,
            "shapes": SHAPES,
            "values": operation.values,
            "weights": operation.weights,
            "special": operation.special,
            "narrow": operation.narrow,
            "tolerance": verdict.TOLERANCE,
            "narrow_error": verdict.NARROW_ERROR,
            "timed": self._timed,
            "rounds": self._rounds,
        }

    def _compile(self, box: Sandbox, made: str, *given: str) -> Ran:
        return box.run([self._compiler, *FLAGS, *given, "-o", made, "-lm"])


def compiler() -> str:
    """The path of the system's C compiler, free of links that a sandbox lacks.

    Raises: RequestError.
    """
    for name in ("gcc", "clang", "cc"):
        found = shutil.which(name)
        if found and os.path.realpath(found).startswith("/usr/"):
            return os.path.realpath(found)
    raise RequestError(
        "kernels are graded with the system's C compiler: got none under /usr; "
        "install the system's package gcc"
    )


def _file(name: str) -> bytes:
    return resources.files("k3.envs.kernels").joinpath(name).read_bytes()


def _program() -> str:
    """The grader with what it imports, as one text: nothing of it is in a file."""
    part = _file("confine.py").decode()
    made = "import sys, types\nmodule = types.ModuleType('confine')\n"
    made += f"exec({part!r}, module.__dict__)\nsys.modules['confine'] = module\n"
    return made + _file("grader.py").decode()
