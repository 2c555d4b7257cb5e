"""Processes that wait for work: torch is imported once, each rank is a fork of it."""

import multiprocessing
import pickle
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from k3.parallel.mesh import Mesh

PRELOAD = (
    "torch.distributed.fsdp",
    "torch.distributed.checkpoint",
    "k3.parallel.fsdp",
    "k3.train.masters",
)
SECONDS = 600


class Group:
    """`size` processes joined by gloo; calls run on all of them at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._members: list[tuple[Any, Connection]] = []

    def __call__(
        self, mesh: Mesh, function: Callable[..., Any], *args: Any
    ) -> list[Any]:
        """Return function(ranks, *args) of every rank; args are pickled.

        A failure ends the group, and the next call starts another.
        """
        assert mesh.ranks == self.size, (mesh, self.size)
        if not self._members:
            self._members = _start(self.size)
        work = pickle.dumps((mesh, function, args))
        for _, pipe in self._members:
            pipe.send_bytes(work)
        told = [_answer(pipe) for _, pipe in self._members]
        wrong = [f"rank {i}: {said}" for i, (ok, said) in enumerate(told) if not ok]
        if wrong:
            self.stop()
            raise AssertionError("\n".join(wrong))
        return [said for _, said in told]

    def stop(self) -> None:
        for process, pipe in self._members:
            pipe.close()
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        self._members = []


def _answer(pipe: Connection) -> tuple[bool, Any]:
    if not pipe.poll(SECONDS):
        return False, f"no answer in {SECONDS} s"
    try:
        return pickle.loads(pipe.recv_bytes())
    except EOFError:
        return False, "ended without an answer"


def _start(size: int) -> list[tuple[Any, Connection]]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOAD))
    store = Path(tempfile.mkdtemp(prefix="k3-ranks-")) / "store"
    members = []
    for rank in range(size):
        here, there = context.Pipe()
        given = (store, rank, size, there)
        process = context.Process(target=_serve, args=given, daemon=True)
        process.start()
        there.close()
        members.append((process, here))
    return members


def _serve(store: Path, rank: int, size: int, pipe: Connection) -> None:
    """Do what comes through the pipe until it closes."""
    import torch

    from k3.parallel import ranks

    torch.set_num_threads(1)
    made: dict[Mesh, ranks.Ranks] = {}
    with ranks.joined(size, store=store, rank=rank, seconds=SECONDS // 2):
        while True:
            try:
                mesh, function, args = pickle.loads(pipe.recv_bytes())
            except EOFError:
                return
            try:
                if mesh not in made:
                    made[mesh] = ranks.of(mesh)
                said = True, function(made[mesh], *args)
            except BaseException:
                said = False, traceback.format_exc()
            pipe.send_bytes(pickle.dumps(said))
