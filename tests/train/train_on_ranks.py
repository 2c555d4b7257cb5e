"""A short run of the toy recipe on ranks, beside the same on one process."""

import contextlib
import dataclasses
from pathlib import Path
from unittest import mock

import small
import torch
import toy

from k3.data.packing import Row
from k3.train import distributed, loop, muon, pretrain, snapshot


class Rows:
    """Packed random rows by number, some with many learned targets, some with few."""

    domains = ("text", "other")

    def __init__(self, tokens):
        self.tokens = tokens

    def row(self, number):
        ids = small.ids(1, self.tokens, seed=number, words=300)
        learned = small.ids(1, self.tokens, seed=number + 999) % 9 > number % 5
        learned[0, 9] = learned[0, -1] = False
        return Row(
            ids=ids,
            targets=ids.roll(-1, 1),
            learned=learned,
            domains=(ids % 2).to(torch.uint8),
            cu_seqlens=torch.tensor([0, 10, self.tokens]),
        )


def recipe(**values):
    given = {"steps": 5, "batch": 4, "tokens": 21, "log_steps": 1, "clip": 0.5} | values
    made = dataclasses.replace(toy.recipe(), **given)
    if made.config.vision is not None:
        values = made.config.to_dict()
        del values["vision_config"]
        made = dataclasses.replace(made, config=type(made.config).from_dict(values))
    return made


FACTS = {"what": "a test"}


def exact():
    """Products of Muon in fp32: bf16 makes 3e-4 of a last bit in a weak direction."""
    return mock.patch.object(muon, "products", return_value=torch.float32)


def stopping(told, until):
    """Keep records, and stop a run after a step."""

    def report(record):
        told.append(record)
        if record["step"] == until:
            raise KeyboardInterrupt

    return report


def alone(folder, until=0, **values):
    """Records, whole snapshot, of one process; goes on where there is a snapshot."""
    asked, told = recipe(**values), []
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    with exact(), contextlib.suppress(KeyboardInterrupt):
        loop.run(
            pretrain.fresh(asked),
            Rows,
            asked,
            folder,
            facts=FACTS,
            resume=bool(snapshot.kept(folder)),
            report=stopping(told, until),
        )
    return told, snapshot.read(folder)[0]


def team(ranks, folder, values):
    """Records of a rank, which goes on where there is a snapshot."""
    until, told = values.pop("until", 0), []
    asked, folder = recipe(**values), Path(folder)
    if ranks.leads and not snapshot.kept(folder):
        loop.begin(folder, FACTS)
    ranks.axis("world").sum_(torch.ones(1))
    model = pretrain.fresh(asked)
    given = model, Rows, asked, folder, ranks
    with exact(), contextlib.suppress(KeyboardInterrupt):
        distributed.train(*given, facts=FACTS, report=stopping(told, until))
    return told
