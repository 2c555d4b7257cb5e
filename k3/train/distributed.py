"""`k3 train` under torchrun: all ranks step together, the first keeps the books."""

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch.distributed as dist

from k3.data import corpora
from k3.data.corpora import Corpus
from k3.model import Model
from k3.parallel import dcp, failure, ranks
from k3.parallel.mesh import Mesh
from k3.parallel.ranks import Ranks
from k3.train import (
    card,
    curves,
    interrupt,
    loop,
    pretrain,
    report,
    shared,
    sources,
    track,
    workers,
)
from k3.train.balance import Balance
from k3.train.feed import Feed, Rows
from k3.train.loop import Report
from k3.train.masters import Masters
from k3.train.pretrain import Result
from k3.train.progress import Progress
from k3.train.recipe import Recipe
from k3.train.team import Team
from k3.train.trainer import Record


def run(
    recipe: Recipe,
    out: str | Path,
    *,
    resume: bool = False,
    quiet: bool = False,
    command: str = "",
    trackers: Sequence[str] = (),
) -> Result | None:
    """Train as pretrain.run does, on the ranks of recipe.parallel, which all call it.

    The folder is one that all ranks see. The first rank alone writes there, but for
    snapshots, says how it goes and judges the files; the others return None.
    """
    began, directory = time.monotonic(), Path(out)
    mesh = Mesh.of(recipe.parallel).check(recipe.config.text, ranks.launched() or 1)
    with ranks.started(mesh) as here, failure.told_once():
        sources.check(name for name, _ in recipe.mixture)
        track.check(trackers)
        quiet = quiet or not here.leads
        run = Run(recipe, directory, here, corpora.stdlib(), quiet)
        data = run.begin(resume)
        at = run.train(data, trackers)
        if not here.leads:
            return None
        pretrain.package(whole(recipe, directory), directory)
        curves.draw(directory)
        result = pretrain.judge(recipe, run.corpus, directory, at, quiet=quiet)
    text = card.text(recipe, run.corpus, result, command)
    (directory / card.FILE_NAME).write_text(text)
    return dataclasses.replace(result, total_seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Run:
    """A run on these ranks."""

    recipe: Recipe
    directory: Path
    ranks: Ranks
    corpus: Corpus
    quiet: bool

    @property
    def facts(self) -> dict[str, Any]:
        """What travels in snapshots."""
        return {"recipe": self.recipe.to_dict(), "corpus": self.corpus.sha256}

    def begin(self, resume: bool) -> Callable[[int], Rows]:
        """Open the folder on the first rank, and read the rows on all of them."""
        known = True
        if self.ranks.leads:
            known = self._open(resume)
            data = self._data(known)
        if self.ranks.mesh.ranks > 1:
            dist.barrier()
        return data if self.ranks.leads else self._data(True)

    def _open(self, resume: bool) -> bool:
        """Whether the tokenizer is known already."""
        if not resume:
            pretrain.open_fresh(self.directory)
            loop.begin(self.directory, self.facts)
            return False
        before = dcp.facts(shared.newest(self.directory))
        pretrain.check_same(self.directory, before, self.facts)
        report.keep_until(self.directory / report.FILE_NAME, before["step"])
        return bool(before["step"])

    def _data(self, known: bool) -> Callable[[int], Rows]:
        given = self.recipe, self.corpus, self.directory
        return pretrain.open_rows(*given, known=known, quiet=self.quiet)

    def train(self, data: Callable[[int], Rows], trackers: Sequence[str]) -> Progress:
        """Step to the end; the first rank writes what is to be told."""
        with ExitStack() as stack:
            tell: Report = _silent
            if self.ranks.leads:
                opened = track.opened(trackers, self.recipe, self.directory)
                also = stack.enter_context(opened)
                told = report.reporter(self.directory, quiet=self.quiet, also=also)
                tell = stack.enter_context(told)
            model = pretrain.fresh(self.recipe)
            given = model, data, self.recipe, self.directory, self.ranks
            return train(*given, facts=self.facts, report=tell)


def train(
    model: Model,
    data: Callable[[int], Rows],
    recipe: Recipe,
    directory: Path,
    ranks: Ranks,
    *,
    facts: dict[str, Any],
    report: Report,
) -> Progress:
    """Go on from the newest snapshot to the recipe's last step, as loop.run does.

    A snapshot is written when it is due, at the end, and where a rank was asked to
    stop, after the same step on all of them; not where one has failed.
    """
    which, of = ranks.reader
    with workers.pool(1) as pool, Feed(data, rank=which, world=of) as feed:
        team = Team.start(model, recipe, feed, pool, ranks)
        at = shared.restore(team, directory, recipe.seed)
        with shared.SharedWriter(directory, recipe.keep, team) as writer, _asked(team):
            try:
                loop.steps(team, at, writer, facts, report)
            except KeyboardInterrupt:
                loop.save(team, at, writer, facts)
                raise
            loop.save(team, at, writer, facts)
    return at


def whole(recipe: Recipe, directory: Path) -> Model:
    """Return on one process the model of the newest snapshot, as its file will be."""
    model = pretrain.fresh(recipe)
    masters = Masters(model, betas=(0.9, 0.9), weight_decay=0.0)
    biases = Balance(model, recipe.balance, bins=recipe.balance_bins)
    held = dcp.whole(shared.newest(directory))
    masters.restore({n: x for n, x in held.items() if n.startswith("weight.")})
    biases.restore(held)
    return model


def _silent(record: Record) -> None:
    """What the other ranks tell."""


@contextmanager
def _asked(team: Team) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask all ranks to stop after the same step."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        team.stop.append(True)

    before = {number: signal.signal(number, ask) for number in interrupt.SIGNALS}
    try:
        yield
    finally:
        for number, how in before.items():
            signal.signal(number, how)
