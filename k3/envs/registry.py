"""Every environment by name: what `k3 rl` and `k3 eval` are told to play.

A name is that of an environment, or that of a task and of the harness it is played
under, as in `table@react`; a task alone has the harness `assistant`.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable

from k3.data.tasks.lot import Split
from k3.envs import (
    assistant,
    autonomous,
    calculator,
    harness,
    kernels,
    lookup,
    web,
)
from k3.envs.environment import Environment
from k3.envs.harness import Harnessed, Task
from k3.envs.local import LocalBackend
from k3.envs.sandbox import Backend
from k3.envs.store import Store
from k3.envs.tasks import (
    arithmetic,
    code,
    inheritance,
    research,
    retrieval,
    table,
    visual,
)
from k3.errors import RequestError

Maker = Callable[[Split, int], Environment]
"""An instance by its split and its index: the same two make the same one."""
Boxed = Callable[[Split, int, Backend], Environment]
"""The same, of an environment that runs programs in sandboxes."""

Posed = Callable[[Split, int], Task]
BoxedPosed = Callable[[Split, int, Backend], Task]
"""Tasks, which a harness makes environments of."""

PLAIN: dict[str, Maker] = {"calculator": calculator.make, "lookup": lookup.make}
BOXED: dict[str, Boxed] = {}
TASKS: dict[str, Posed] = {
    "arithmetic": arithmetic.make,
    "inheritance": inheritance.make,
    "office": assistant.make,
    "research": research.make,
    "retrieval": retrieval.make,
    "table": table.make,
}
BOXED_TASKS: dict[str, BoxedPosed] = {
    "autonomous": autonomous.make,
    "code": code.make,
    "kernels": kernels.make,
    "visual": visual.make,
    "web": web.make,
}

HARNESS = "assistant"
"""What a task is played under where none is named."""


def names() -> list[str]:
    """All names, sorted; those of tasks may have `@` and a harness behind them."""
    return sorted((*PLAIN, *BOXED, *TASKS, *BOXED_TASKS))


def named(name: str, backend: Backend | None = None) -> Maker:
    """The maker of this name; sandboxes come from `backend`, else from this machine.

    Raises: RequestError.
    """
    first, at, preset = name.partition("@")
    if name in PLAIN:
        return PLAIN[name]
    if name in BOXED:
        return _boxed(BOXED[name], backend)
    if first in TASKS or first in BOXED_TASKS:
        return _task(first, preset if at else HARNESS, backend)
    raise RequestError(
        f"an environment is one of {', '.join(names())}: got {name!r}; choose one, "
        "with @ and a harness behind a task"
    )


def _task(name: str, preset: str, backend: Backend | None) -> Maker:
    worn = harness.preset(preset)
    if name in TASKS:
        posed = TASKS[name]
        return lambda split, index: Harnessed(posed(split, index), worn)
    pose = BOXED_TASKS[name]
    return _boxed(lambda s, i, boxes: Harnessed(pose(s, i, boxes), worn), backend)


def _boxed(make: Boxed, backend: Backend | None) -> Maker:
    """A maker with sandboxes of this machine where none are given."""
    own = _own() if backend is None else backend
    return lambda split, index: make(split, index, own)


def _own() -> Backend:
    """Sandboxes of this machine; the folder of their store goes when they do."""
    folder = tempfile.mkdtemp(prefix="k3-envs-")
    store = Store(folder)
    weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
    return LocalBackend(store)
