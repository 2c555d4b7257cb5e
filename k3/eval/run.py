"""A protocol run on a local model: questions in batches, figures at the end."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from k3.data import tasks
from k3.data.tasks import Dialogue, Question
from k3.data.tokenizer import Tokenizer
from k3.eval import attempt, judge
from k3.eval.protocol import Protocol
from k3.eval.result import Report, Result
from k3.eval.transcript import Asked, Record, Transcript
from k3.model import Model
from k3.model.generate import Completion, GenerateOptions, generate


def run(
    model: Model,
    tokenizer: Tokenizer,
    protocol: Protocol,
    *,
    transcript: Path | None = None,
    facts: dict[str, Any] | None = None,
    report: Report = lambda done, count: None,
) -> Result:
    """Ask every question of the protocol that the transcript has no answer to.

    `facts` say which model it is; they stand in the transcript's first line.
    Raises: RequestError where the transcript is of another run.
    """
    task = tasks.named(protocol.task, tokenizer, "heldout")
    with Transcript(transcript, attempt.header(protocol, facts)) as kept:
        asked = kept.missing(protocol.count, protocol.samples)
        for part in _batches(asked, protocol.batch):
            questions = [
                _question(task.item(index), protocol, tokenizer) for index, _ in part
            ]
            kept.append(_answers(model, tokenizer, protocol, part, questions))
            report(len(kept.records), protocol.count * protocol.samples)
        return Result.of(protocol, kept.ordered())


def _question(item: tasks.Item, protocol: Protocol, tokenizer: Tokenizer) -> Question:
    if isinstance(item, Dialogue):
        item = attempt.dialogue(item, protocol.effort)
    return item.question(tokenizer)


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
    limit = protocol.context_tokens or model.config.text.max_position_embeddings
    rooms = [limit - len(question.ids) for question in questions]
    fits = [place for place, room in enumerate(rooms) if room > 0]
    options = [
        GenerateOptions(
            max_tokens=min(protocol.max_tokens, rooms[place]),
            temperature=float(protocol.temperature),
            top_p=float(protocol.top_p),
            seed=attempt.seed(protocol, asked[place]),
            stop_ids=_ends(tokenizer),
        )
        for place in fits
    ]
    within = [questions[place] for place in fits]
    found: dict[int, Completion] = {}
    if within:
        ids, rows = [q.ids for q in within], features(model, within)
        made = generate(model, ids, options, tokenizer=tokenizer, features=rows)
        found = dict(zip(fits, made, strict=True))
    return [
        _record(asked[i], questions[i], found.get(i), protocol, tokenizer)
        for i in range(len(asked))
    ]


def _record(
    place: Asked,
    question: Question,
    completion: Completion | None,
    protocol: Protocol,
    tokenizer: Tokenizer,
) -> Record:
    """The answer with its scores; where the context had no room there is none."""
    found = completion or _NOTHING
    answer = judge.read(found, question, tokenizer)
    return {
        "index": place[0],
        "sample": place[1],
        "question": tokenizer.decode(question.ids),
        "wanted": question.answer,
        "answer": answer.text,
        "ended": "context" if completion is None else found.finish,
        "usage": {"read": len(question.ids), "cached": 0, "written": len(found.ids)},
        "scores": judge.JUDGES[protocol.judge](answer, question),
    }


_NOTHING = Completion(ids=[], logprobs=[], alternatives=[], text="", finish="length")


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
