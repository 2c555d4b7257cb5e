"""From a snapshot and the journal to where a run was, whatever ended it."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from k3.post import journal
from k3.post.journal import Line
from k3.post.prompts import Numbered
from k3.post.rl import At, Loop
from k3.train import snapshot


def restore(loop: Loop, prompts: Numbered, directory: Path) -> None:
    """Take back the newest snapshot, and from the journal all that it does not know.

    Raises: CheckpointError where either is damaged or of another run.
    """
    held, known = snapshot.read(directory)
    try:
        if known["iteration"]:
            loop.policy.masters.restore(held)
            loop.policy.balance.restore(held)
        loop.at = At(**{k: known[k] for k in loop.at.facts() if k != "step"})
        replay(loop, prompts, list(journal.read(directory / journal.FILE_NAME)))
    except (KeyError, RuntimeError, TypeError, ValueError) as fault:
        path = snapshot.path_of(directory, int(known.get("step") or 0))
        raise snapshot.damaged(path, repr(fault)) from fault
    if loop.at.iteration:
        loop.sampler.update(loop.at.iteration)


def replay(loop: Loop, prompts: Numbered, lines: Sequence[Line]) -> None:
    """Put every group where it was: learned from, to be learned from again, or open.

    Samples that had not finished begin anew, and so do those that an environment has
    lost, unless an update has left them out: whatever it was may be mended by now.
    """
    learned = {line["iteration"]: line for line in lines if line["kind"] == "learned"}
    updates = {number: line["groups"] for number, line in learned.items()}
    left = {group for groups in updates.values() for group in groups}
    ended = {
        line["key"]: line
        for line in lines
        if line["kind"] == "finished" and (not line["lost"] or line["group"] in left)
    }
    before = [updates[i] for i in sorted(updates) if i < loop.at.iteration]
    done = {_number(group) for groups in before for group in groups}
    last = max((_number(line["group"]) for line in ended.values()), default=-1)
    first = next(n for n in itertools.count() if n not in done)
    for number in range(first, last + 1):
        loop.rollouts.count = prompts.number = number
        samples = loop.rollouts.take()
        for one in samples:
            if one.key in ended:
                journal.restore_(one, ended[one.key])
        if number in done:
            loop.rollouts.forget(samples[0].group)
    if first > last:
        loop.rollouts.count = prompts.number = first
    loop.rollouts.early = _early(lines)
    after = [learned[i] for i in sorted(learned) if i >= loop.at.iteration]
    loop.again = [
        [
            (loop.rollouts.forget(name), rewards)
            for name, rewards in zip(line["groups"], line["rewards"], strict=True)
        ]
        for line in after
    ]


def _early(lines: Sequence[Line]) -> int:
    """Samples that finished, and were not lost, after the last update was noted."""
    since = itertools.takewhile(lambda x: x["kind"] == "finished", reversed(lines))
    return sum(not line["lost"] for line in since)


def _number(group: str) -> int:
    """The place of a group among all that were taken."""
    return int(group.partition(":")[0])
