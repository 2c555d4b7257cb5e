"""What a rank does with its tokens of a packed row."""

from collections import Counter

import small
import torch
import torch.nn.functional as F

from k3.parallel import context, expert, saved, share
from k3.parallel.activation import Plan

RATE = 0.05
FOUR = {"num_hidden_layers": 4, "num_experts": 12}


def config(**text):
    return small.config(linear=small.schedule(4), **FOUR, **text)


def made(dtype=torch.float64):
    return small.model(dtype, config())


def row(step, lens):
    """ids, targets [1 T] and where a target counts: not the last of a document."""
    ids = small.ids(1, sum(lens) + 1, seed=300 + step)
    cu = torch.tensor([0, *lens]).cumsum(0)
    learned = torch.ones(1, sum(lens), dtype=torch.bool)
    learned[0, cu[1:][cu[1:] > 0] - 1] = False
    return ids[:, :-1], ids[:, 1:], learned, cu


def loss_of(logits, targets, learned, total):
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (each * learned.flatten()).sum() / total


def descend(model, steps, loss_at, sum_=lambda name, g: g):
    """(losses, first gradients, weights) of plain gradient descent."""
    losses, first = [], {}
    for step in range(steps):
        loss = loss_at(model, step)
        model.zero_grad()
        loss.backward()
        losses.append(loss.detach())
        with torch.no_grad():
            for name, p in model.named_parameters():
                if p.grad is not None:
                    g = sum_(name, p.grad)
                    first.setdefault(name, g.clone())
                    p -= RATE * g
    return torch.stack(losses), first, dict(model.state_dict())


def alone(lens, steps, dtype=torch.float64):
    def loss_at(model, step):
        ids, targets, learned, cu = row(step, lens)
        return loss_of(model(ids, cu_seqlens=cu), targets, learned, learned.sum())

    return descend(made(dtype), steps, loss_at)


def trained(ranks, lens, steps, dtype=torch.float64):
    """The same descent, of which this rank sees its tokens: also bytes by name."""
    axis, sent = ranks.axis("context"), Counter()
    model = context.split(made(dtype), axis, sent)
    edges = share.bounds(sum(lens), axis.size)
    here = slice(edges[axis.rank], edges[axis.rank + 1])

    def loss_at(model, step):
        ids, targets, learned, cu = row(step, lens)
        logits = context.run(model, ids[:, here], cu, axis)
        return loss_of(logits, targets[:, here], learned[:, here], learned.sum())

    losses, gradients, weights = descend(
        model, steps, loss_at, lambda name, g: axis.sum_(g)
    )
    return axis.sum_(losses), gradients, weights, dict(sent)


def combined(ranks, lens, steps, recompute):
    """Experts and tokens both spread: the rows of two expert ranks, each in parts."""
    axis, experts = ranks.axis("context"), ranks.axis("expert")
    model = expert.split(context.split(made(), axis), experts)
    again = frozenset(saved.units(model)) if recompute else frozenset()
    edges = share.bounds(sum(lens), axis.size)
    here = slice(edges[axis.rank], edges[axis.rank + 1])

    def loss_at(model, step):
        ids, targets, learned, cu = row(step * experts.size + experts.rank, lens)
        with saved.applied(model, Plan(recomputed=again)):
            logits = context.run(model, ids[:, here], cu, axis)
        total = learned.sum() * experts.size
        return loss_of(logits, targets[:, here], learned[:, here], total)

    def sum_(name, g):
        return ranks.axis("replica" if ".experts.w" in name else "trunk").sum_(g)

    losses, gradients, weights = descend(model, steps, loss_at, sum_)
    return ranks.axis("trunk").sum_(losses), gradients, weights, {}


def combined_alone(lens, steps, readers=2):
    """The same in one process: two rows a step."""

    def loss_at(model, step):
        losses = []
        for reader in range(readers):
            ids, targets, learned, cu = row(step * readers + reader, lens)
            total = learned.sum() * readers
            logits = model(ids, cu_seqlens=cu)
            losses.append(loss_of(logits, targets, learned, total))
        return sum(losses)

    return descend(made(), steps, loss_at)


def logits(ranks, lens, swapped=False):
    """This rank's logits; `swapped` scans the summaries in the wrong order."""
    axis, sent = ranks.axis("context"), Counter()
    model = context.split(made(), axis, sent)
    if swapped:
        gather = context.Wire.gather
        context.Wire.gather = lambda self, name, x: gather(self, name, x).flip(0)
    try:
        ids, _, _, cu = row(0, lens)
        edges = share.bounds(sum(lens), axis.size)
        here = slice(edges[axis.rank], edges[axis.rank + 1])
        with torch.no_grad():
            return context.run(model, ids[:, here], cu, axis), dict(sent)
    finally:
        if swapped:
            context.Wire.gather = gather


def refused(ranks):
    """What is said of a row of another length."""
    axis = ranks.axis("context")
    try:
        context.run(made(), small.ids(1, 4), torch.tensor([0, 9]), axis)
    except Exception as fault:
        return str(fault)
