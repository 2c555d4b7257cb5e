"""Started processes: their groups along each axis, under torchrun or by a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import DeviceMesh, ProcessGroup

from k3.errors import RequestError
from k3.parallel.mesh import AXES, Mesh

TIMEOUT_S = 1800
"""How long a collective waits for the slowest rank."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The ranks that differ from this one along one axis; no group for one."""

    size: int = 1
    rank: int = 0
    mesh: DeviceMesh | None = None

    @property
    def group(self) -> ProcessGroup | None:
        """Where they talk; None for one rank."""
        return None if self.mesh is None else self.mesh.get_group()

    def sum_(self, x: Tensor) -> Tensor:
        """Add up x over the axis, in place; every rank holds the same sum."""
        if self.mesh is not None:
            dist.all_reduce(x, group=self.group)
        return x

    def peer(self, rank: int) -> int:
        """Return the global number of a rank of the axis."""
        group = self.group
        return rank if group is None else dist.get_global_rank(group, rank)


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """This process among the others.

    `axis` knows the four of the mesh, and three that are products: "trunk" = expert x
    data x context, "replica" = data x context, "world" = all.
    """

    mesh: Mesh = field(default_factory=Mesh)
    rank: int = 0
    device: str = "cpu"
    axes: dict[str, Axis] = field(default_factory=dict)
    grid: DeviceMesh | None = None
    """(pipeline, expert, replica): what a sharded parameter of experts lies on."""

    def axis(self, name: str) -> Axis:
        """Return an axis by name."""
        return self.axes.get(name, _ALONE)

    @property
    def leads(self) -> bool:
        """Whether this rank writes metrics and shows progress."""
        return self.rank == 0

    @property
    def reader(self) -> tuple[int, int]:
        """(which, of how many) ranks that read different rows."""
        return self.mesh.rows_index(self.rank), self.mesh.rows


_ALONE = Axis()


def launched() -> int:
    """Return how many processes torchrun has started; 0 without it."""
    world = os.environ.get("WORLD_SIZE", "")
    return int(world) if "RANK" in os.environ and world.isdecimal() else 0


@contextmanager
def started(mesh: Mesh, device: str = "cpu") -> Iterator[Ranks]:
    """Join the processes that torchrun has started; one rank needs none.

    Raises: RequestError where torchrun has started another number.
    """
    if mesh.ranks == 1:
        yield Ranks(mesh, device=device)
        return
    if launched() != mesh.ranks:
        raise RequestError(
            f"parallel {mesh} needs {mesh.ranks} processes: got {launched() or 1}; "
            f"start with torchrun --nproc-per-node {mesh.ranks} -m k3 train ..."
        )
    with joined(mesh.ranks, device=device):
        yield of(mesh, device)


@contextmanager
def joined(
    world: int,
    *,
    store: Path | None = None,
    rank: int = 0,
    device: str = "cpu",
    seconds: float = TIMEOUT_S,
) -> Iterator[None]:
    """Be one of `world` processes until the end of the block.

    They meet through the file `store`, which must not exist before and is no port to
    be taken; without one, as torchrun has said in the environment.
    """
    given: dict[str, Any] = {"timeout": timedelta(seconds=seconds)}
    if store is not None:
        file = dist.FileStore(str(store), world)
        given |= {"store": file, "rank": rank, "world_size": world}
    dist.init_process_group(_backend(device), **given)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _backend(device: str) -> str:
    if not device.startswith("cuda"):
        return "gloo"
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    return "nccl"


def of(mesh: Mesh, device: str = "cpu") -> Ranks:
    """Make the groups of a mesh among joined processes, on all of them at once."""
    if mesh.ranks == 1:
        return Ranks(mesh, device=device)
    kind = device.partition(":")[0]
    box = dist.init_device_mesh(kind, mesh.shape, mesh_dim_names=AXES)
    shape = (mesh.pipeline, mesh.trunk)
    stages = dist.init_device_mesh(kind, shape, mesh_dim_names=("pipeline", "trunk"))
    names = ("pipeline", "expert", "replica")
    grid = dist.init_device_mesh(
        kind, (mesh.pipeline, mesh.expert, mesh.replica), mesh_dim_names=names
    )
    world = dist.init_device_mesh(kind, (mesh.ranks,), mesh_dim_names=("world",))
    lines = {name: box[name] for name in AXES}
    lines |= {"trunk": stages["trunk"], "replica": grid["replica"], "world": world}
    axes = {
        name: Axis(line.size(), line.get_local_rank(), line)
        for name, line in lines.items()
        if line.size() > 1
    }
    return Ranks(mesh, dist.get_rank(), device, axes, grid)
