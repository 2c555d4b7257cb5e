"""Judges of the command line, and runs that are rated against each other."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3.cli import measuring, output
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.eval.compare import Compared
    from k3.post.judge import ModelJudge
    from k3.post.recipes import Recipe
    from k3.post.rubric import Rubric
    from k3.post.tournament import Tournament


def compare(
    folders: Sequence[str], judge: str, rubric: Path | None, *, as_json: bool
) -> int:
    """Rate the runs of these folders: by their scores, or by a judge and a rubric."""
    from k3.eval import compare as comparing

    lines = _lines(judge, rubric)
    asked, decide = None, None
    if lines is not None:
        asked = _judge(judge)
        decide = comparing.by_judge(asked, lines)
    found = comparing.compare([Path(folder) for folder in folders], decide)
    said = {} if asked is None else {"asked": asked.asked, "unread": asked.unread}
    if as_json:
        runs = [dataclasses.asdict(each) for each in found]
        output.json_value({"ok": True, "compared": runs, **said})
    else:
        _print(found, said)
    return 0


def judged(
    url: str, rubric: Path | None, recipe: "Recipe", factor: float
) -> "dict[str, Tournament]":
    """A tournament for each task of a recipe; none without a judge."""
    from k3.post.tournament import Tournament, TournamentOptions

    lines = _lines(url, rubric)
    if lines is None:
        if factor:
            raise RequestError(
                "--verbose holds judged samples: add --judge and --rubric"
            )
        return {}
    options = TournamentOptions(factor=factor)
    return dict.fromkeys(recipe.tasks, Tournament(_judge(url), lines, options))


def _lines(judge: str, rubric: Path | None) -> "Rubric | None":
    """The rubric of a file; None where there is neither rubric nor judge."""
    from k3.post import rubric as rubrics

    if bool(judge) != (rubric is not None):
        raise RequestError(
            "a judge needs a rubric, and a rubric a judge: give --judge URL and "
            "--rubric FILE, or neither"
        )
    if rubric is None:
        return None
    try:
        return rubrics.parse(rubric.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"--rubric must be a file: {error}") from error


def _judge(url: str) -> "ModelJudge":
    from k3.post.judge import ModelJudge
    from k3.post.speaker import Sampling
    from k3.post.speaker_server import ServerSpeaker

    server = ServerSpeaker(url, key=measuring.key())
    return ModelJudge(server, Sampling(temperature=0.0, top_p=1.0, max_tokens=4096))


def _print(found: "Sequence[Compared]", said: dict[str, Any]) -> None:
    print(
        f"{'task':12} {'run':20} {'questions':>9} {'wins':>6} {'95 % interval':17} "
        f"{'Elo':>6}  95 % interval"
    )
    for each in found:
        for r in each.ratings:
            wins = f"{r.wins_low:.3f} to {r.wins_high:.3f}"
            print(
                f"{each.name:12} {r.name:20} {each.questions:9} {r.wins:6.3f} "
                f"{wins:17} {r.elo:6.0f}  {r.elo_low:.0f} to {r.elo_high:.0f}"
            )
        if each.differs:
            output.warn(f"{each.name} differs in {', '.join(each.differs)}")
    if said:
        output.warn(
            f"the judge was asked {said['asked']} times; {said['unread']} answers "
            "could not be read and count as ties"
        )
