"""A protocol run: questions in batches, a transcript that resumes, figures at the end.

The transcript is a file of JSON lines: the first says what is run, each other one is
an answer with its scores. A line cut by a kill is written again.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from k3.data import tasks
from k3.data.tasks import Question
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.eval import judge
from k3.eval.figures import Figure, summarize
from k3.eval.protocol import Protocol
from k3.model import Model
from k3.model.generate import GenerateOptions, generate

Record = dict[str, Any]
Asked = tuple[int, int]
"""A question's index and the number of its sample."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The figures of a protocol, and every answer behind them."""

    protocol: Protocol
    figures: tuple[Figure, ...]
    records: tuple[Record, ...]

    @property
    def score(self) -> Figure:
        """The figure that stands for the protocol."""
        return next(f for f in self.figures if f.name == self.protocol.score)


def run(
    model: Model,
    tokenizer: Tokenizer,
    protocol: Protocol,
    *,
    transcript: Path | None = None,
    facts: dict[str, Any] | None = None,
    report: Callable[[int, int], None] = lambda done, count: None,
) -> Result:
    """Ask every question of the protocol that the transcript has no answer to.

    `facts` say which model it is; they stand in the transcript's first line.
    Raises: RequestError where the transcript is of another run.
    """
    header = {"protocol": asdict(protocol), "facts": facts or {}}
    records = [] if transcript is None else resume(transcript, header)
    known = {(r["index"], r["sample"]) for r in records}
    asked = [
        (index, sample)
        for index in range(protocol.count)
        for sample in range(protocol.samples)
        if (index, sample) not in known
    ]
    task = tasks.named(protocol.task, tokenizer, "heldout")
    for part in _batches(asked, protocol.batch):
        questions = [task.question(index) for index, _ in part]
        found = _answers(model, tokenizer, protocol, part, questions)
        _append(transcript, found)
        records += found
        report(len(records), protocol.count * protocol.samples)
    records.sort(key=lambda r: (r["index"], r["sample"]))
    figures = summarize([(r["index"], r["scores"]) for r in records])
    return Result(protocol=protocol, figures=figures, records=tuple(records))


def resume(transcript: Path, header: Record) -> list[Record]:
    """The answers that a transcript holds; it is begun where there is none.

    Raises: RequestError.
    """
    transcript.parent.mkdir(parents=True, exist_ok=True)
    lines = transcript.read_bytes().splitlines() if transcript.is_file() else []
    whole = [line for line in map(_read, lines) if line is not None]
    if whole and whole[0] != json.loads(json.dumps(header)):
        raise RequestError(
            f"a transcript is resumed by the run that began it: {transcript} is of "
            "another protocol or model; choose another folder"
        )
    text = "".join(json.dumps(line) + "\n" for line in whole or [header])
    aside = transcript.with_name(f".{transcript.name}.writing")
    aside.write_text(text)
    aside.replace(transcript)
    return whole[1:]


def _read(line: bytes) -> Record | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _append(transcript: Path | None, records: Sequence[Record]) -> None:
    if transcript is not None:
        with transcript.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)


def _batches(asked: Sequence[Asked], size: int) -> Iterator[Sequence[Asked]]:
    for start in range(0, len(asked), size):
        yield asked[start : start + size]


def _answers(
    model: Model,
    tokenizer: Tokenizer,
    protocol: Protocol,
    asked: Sequence[Asked],
    questions: Sequence[Question],
) -> list[Record]:
    options = [
        GenerateOptions(
            max_tokens=protocol.max_tokens,
            temperature=protocol.temperature,
            top_p=1.0,
            seed=protocol.seed + 1_000_003 * index + sample,
            stop_ids=_ends(tokenizer),
        )
        for index, sample in asked
    ]
    ids = [question.ids for question in questions]
    completions = generate(
        model, ids, options, tokenizer=tokenizer, features=features(model, questions)
    )
    return [
        _record(place, question, judge.read(completion, question, tokenizer), protocol)
        for place, question, completion in zip(
            asked, questions, completions, strict=True
        )
    ]


def _record(
    place: Asked, question: Question, answer: judge.Answer, protocol: Protocol
) -> Record:
    return {
        "index": place[0],
        "sample": place[1],
        "wanted": question.answer,
        "answer": answer.text,
        "scores": judge.JUDGES[protocol.judge](answer, question),
    }


def _ends(tokenizer: Tokenizer) -> tuple[int, ...]:
    """A message's end and a document's: whichever the model was taught."""
    return tokenizer.special_id("<|end_of_msg|>"), tokenizer.eos_id


@torch.no_grad()
def features(model: Model, questions: Sequence[Question]) -> torch.Tensor | None:
    """Image rows of all questions in order, None where no question has a picture."""
    pixels = [q.pixels for q in questions if q.pixels is not None]
    grids = [q.grids for q in questions if q.grids is not None]
    if not pixels:
        return None
    return model.encode_images(torch.cat(pixels), torch.cat(grids))
