"""Runs beside each other: transcripts of the same protocol, question by question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from k3.errors import RequestError
from k3.eval import ratings, transcript
from k3.eval.ratings import Rating, Table
from k3.eval.transcript import Record
from k3.post import judge as judging
from k3.post.judge import Judge
from k3.post.rubric import Rubric

Decide = Callable[[Record, Record], float]
"""1 where the first record is better, 0 where the second is, 0.5 for neither."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One protocol's ratings over the questions that all runs have answered.

    `differs` names the conditions under which the runs were not alike.
    """

    name: str
    questions: int
    ratings: tuple[Rating, ...]
    differs: tuple[str, ...]


def compare(folders: Sequence[Path], decide: Decide | None = None) -> list[Compared]:
    """Ratings for each transcript that all folders have. Raises: RequestError."""
    if len(folders) < 2:
        raise RequestError(
            f"a comparison needs two folders of transcripts: got {len(folders)}"
        )
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise RequestError(f"no such folder: {', '.join(missing)}")
    shared = set.intersection(*({f.name for f in d.glob("*.jsonl")} for d in folders))
    if not shared:
        raise RequestError(
            f"the folders share no transcript: {', '.join(map(str, folders))}; run "
            "the same task with --out in each"
        )
    named = _labels(folders)
    return [
        _compared(file, [d / file for d in folders], named, decide)
        for file in sorted(shared)
    ]


def by_score(name: str) -> Decide:
    """The higher figure of this name is better."""

    def decide(one: Record, two: Record) -> float:
        a, b = one["scores"][name], two["scores"][name]
        return 0.5 if a == b else float(a > b)

    return decide


def by_judge(judge: Judge, rubric: Rubric) -> Decide:
    """The answer that a judge prefers in both orders is better."""

    def decide(one: Record, two: Record) -> float:
        verdict = judging.both(
            judge, one["question"], one["answer"], two["answer"], rubric
        )
        return {"first": 1.0, "second": 0.0}.get(verdict.winner, 0.5)

    return decide


def table(runs: Sequence[Sequence[Record]], decide: Decide) -> Table:
    """[questions, runs, runs]: the share of pairs of samples that i won over j."""
    groups = [_by_index(records) for records in runs]
    shared = sorted(set.intersection(*(set(group) for group in groups)))
    found = np.zeros((len(shared), len(runs), len(runs)))
    for place, index in enumerate(shared):
        for i, j in combinations(range(len(runs)), 2):
            pairs = [decide(a, b) for a in groups[i][index] for b in groups[j][index]]
            found[place, i, j] = sum(pairs) / len(pairs)
            found[place, j, i] = 1 - found[place, i, j]
    return found


def _compared(
    file: str, paths: Sequence[Path], names: Sequence[str], decide: Decide | None
) -> Compared:
    read = [transcript.read(path) for path in paths]
    protocols = [header["protocol"] for header, _ in read]
    asked = {_asked(protocol) for protocol in protocols}
    if len(asked) > 1:
        raise RequestError(
            f"{file} must be of one task in all folders: got {', '.join(sorted(asked))}"
        )
    decide = decide or by_score(protocols[0]["score"])
    found = table([records for _, records in read], decide)
    keys = {key for p in protocols for key in p} - {"name", "batch"}
    values = {k: {repr(p.get(k)) for p in protocols} for k in sorted(keys)}
    return Compared(
        name=file.removesuffix(".jsonl"),
        questions=len(found),
        ratings=tuple(ratings.rate(names, found)),
        differs=tuple(key for key, said in values.items() if len(said) > 1),
    )


def _asked(protocol: Record) -> str:
    return str(protocol.get("task") or protocol.get("environment"))


def _by_index(records: Sequence[Record]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(record["index"], []).append(record)
    return found


def _labels(folders: Sequence[Path]) -> list[str]:
    """The folders' own names where they differ, else their paths."""
    short = [folder.name for folder in folders]
    if len(set(short)) == len(short):
        return short
    if len(set(folders)) == len(folders):
        return [str(folder) for folder in folders]
    raise RequestError(
        f"a folder is compared with others: got {', '.join(map(str, folders))}"
    )
