"""Protocols run through whoever answers conversations: a server, or the engine here.

Questions are dialogues whose first answer is judged; environments are played to their
end. Attempts run side by side, and each is kept the moment that it has ended.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

from k3.data import xtml
from k3.data.tasks import DRAWS, Dialogue, Lot
from k3.data.xtml import Message, RenderOptions
from k3.envs import environment, registry
from k3.envs.environment import Chat, Environment
from k3.envs.harness import Harnessed
from k3.errors import RequestError
from k3.eval import attempt, judge
from k3.eval.protocol import Conditions, Play, Protocol
from k3.eval.result import Report, Result
from k3.eval.transcript import Asked, Record, Transcript
from k3.post.agent import SpeakingAgent
from k3.post.speaker import ContextFull, Sampling, Speaker, Usage

Work = Callable[[Asked], Record]


def ask(speaker: Speaker, protocol: Protocol, asked: Asked) -> Record:
    """One answer to one question. Raises: RequestError."""
    item = DRAWS[protocol.task](Lot.of(protocol.task, "heldout", asked[0]))
    if not isinstance(item, Dialogue) or item.pictures:
        raise RequestError(
            f"{protocol.name} asks for the continuation of a text or about pictures, "
            "which needs the model here: give its folder, or choose another task"
        )
    item = attempt.dialogue(item, protocol.effort)
    first = [m["role"] for m in item.messages].index("assistant")
    messages, wanted = item.messages[:first], item.messages[first]
    try:
        spoken = speaker.answer(messages, item.wanted, _sampling(protocol, asked))
        said, usage = spoken.message, spoken.usage
    except ContextFull:
        said, usage = Message(None, None, (), "context"), Usage()
    answer = judge.Answer(text=said.content or "", message=said)
    text = str(wanted.get("content") or "")
    return {
        "index": asked[0],
        "sample": asked[1],
        "question": messages[-1]["content"],
        "wanted": text,
        "answer": answer.text,
        "message": said.to_dict(),
        "ended": said.finish_reason,
        "usage": tokens(usage),
        "scores": judge.JUDGES[protocol.judge](answer, judge.Wanted(text, item)),
    }


def play(
    speaker: Speaker,
    protocol: Play,
    asked: Asked,
    instance: Environment,
    stop: threading.Event,
) -> Record:
    """One episode in an instance, which is closed. Raises: RequestError."""
    wanted = attempt.effort(instance.wanted, protocol.effort)
    agent = SpeakingAgent(speaker, wanted, _sampling(protocol, asked), protocol.context)
    messages: list[Chat] = []
    try:
        messages += instance.begin()
        opening = len(messages)
        ended = _episode(instance, agent, messages, protocol.turns, stop)
        score = instance.score()
    finally:
        instance.close()
    return {
        "index": asked[0],
        "sample": asked[1],
        "question": "\n".join(shown(m) for m in messages[:opening]),
        "answer": _last(messages, opening),
        "messages": messages,
        "ended": ended,
        "turns": agent.turns,
        "shortened": agent.shortened,
        "usage": tokens(agent.usage),
        "scores": {"solved": float(score >= 1.0), "score": float(score)},
    }


def conduct(
    speaker: Speaker,
    protocol: Protocol | Play,
    *,
    transcript: Path | None = None,
    facts: dict[str, Any] | None = None,
    report: Report = lambda done, count: None,
) -> Result:
    """Try all that the transcript does not hold, `batch` at a time.

    Raises: RequestError; what had ended by then is kept.
    """
    stop = threading.Event()
    work = _work(speaker, protocol, stop)
    with Transcript(transcript, attempt.header(protocol, facts)) as kept:
        asked = kept.missing(protocol.count, protocol.samples)
        for record in _finished(work, asked, protocol.batch, stop):
            kept.append([record])
            report(len(kept.records), protocol.count * protocol.samples)
        return Result.of(protocol, kept.ordered())


def _work(speaker: Speaker, protocol: Protocol | Play, stop: threading.Event) -> Work:
    """One attempt, as the protocol has it; sandboxes are those of one backend."""
    if not isinstance(protocol, Play):
        return lambda asked: ask(speaker, protocol, asked)
    make = registry.named(protocol.environment)

    def work(asked: Asked) -> Record:
        return play(speaker, protocol, asked, make("heldout", asked[0]), stop)

    return work


def tokens(usage: Usage) -> dict[str, int]:
    """Usage as a record has it."""
    return {"read": usage.read, "cached": usage.cached, "written": usage.written}


def shown(message: Chat) -> str:
    """The text of a message, its pictures left out."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content)


def _episode(
    instance: Environment,
    agent: SpeakingAgent,
    messages: list[Chat],
    turns: int,
    stop: threading.Event,
) -> str:
    """Play to the end; why it was one: end, turns, length, context or format."""
    # A harness may show less than was said; the environment heard all of it.
    act = instance.through(agent) if isinstance(instance, Harnessed) else agent
    for turn in range(turns):
        if stop.is_set():
            raise RequestError("the run was stopped")
        try:
            answer = act(messages)
        except ContextFull:
            return "context"
        messages.append(environment.said(answer, turn))
        if answer.finish_reason in ("length", "abort"):
            # What was cut was not said: the environment judges what it has seen.
            return "length"
        heard = instance.reply(answer)
        if heard is None:
            return "end"
        messages += heard
        if not _shows(messages, agent.wanted):
            return "format"
    return "turns"


def _shows(messages: list[Chat], wanted: RenderOptions) -> bool:
    """Whether XTML can show a conversation again: not with every call that is made."""
    try:
        xtml.render(messages, wanted, None)
    except RequestError:
        return False
    return True


def _last(messages: list[Chat], opening: int) -> str:
    """What the agent said last."""
    own = [m for m in messages[opening:] if m["role"] == "assistant"]
    return shown(own[-1]) if own else ""


def _finished(
    work: Work, asked: list[Asked], workers: int, stop: threading.Event
) -> Iterator[Record]:
    """Records as they end; after a failure the others end at their next turn."""
    left = iter(asked)
    failed: BaseException | None = None
    with ThreadPoolExecutor(workers) as pool:
        try:
            running = {pool.submit(work, each) for each in islice(left, workers)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    error = future.exception()
                    if error is None:
                        yield future.result()
                        continue
                    failed = failed or error
                    stop.set()
                if failed is None:
                    more = islice(left, workers - len(running))
                    running |= {pool.submit(work, each) for each in more}
        finally:
            stop.set()
    if failed is not None:
        raise failed


def _sampling(protocol: Conditions, asked: Asked) -> Sampling:
    return Sampling(
        temperature=float(protocol.temperature),
        top_p=float(protocol.top_p),
        max_tokens=protocol.max_tokens,
        seed=attempt.seed(protocol, asked),
        context_tokens=protocol.context_tokens,
    )
