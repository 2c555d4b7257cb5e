"""One step of a small model with pictures, on whatever mesh there is."""

import small
import torch
import torch.nn.functional as F

from k3.data.packing import Row
from k3.parallel import fsdp, pipeline, schedule
from k3.parallel.flow import Flow
from k3.parallel.ranks import Ranks


def model(*, dtype=torch.float32, experts=11):
    made = small.config(
        vision={"vt_num_hidden_layers": 1},
        num_experts=experts,
        num_nextn_predict_layers=1,
    )
    return small.model(dtype, made)


def rows(count, tokens=29):
    """Packed rows of two documents and padding; every third has a picture."""
    made = []
    for i in range(count):
        ids = small.ids(1, tokens, seed=100 + i)
        learned = small.ids(1, tokens, seed=200 + i) > 20
        learned[0, 11] = learned[0, -4:] = False
        pixels = grids = None
        if i % 3 == 1:
            side = 14
            pixels = torch.rand(
                8, 3, side, side, generator=torch.Generator().manual_seed(i)
            )
            grids = torch.tensor([[1, 2, 4]])
            ids[0, 3:5] = small.MEDIA
        made.append(
            Row(
                ids=ids,
                targets=ids.roll(-1, 1),
                learned=learned,
                domains=torch.zeros(1, tokens, dtype=torch.uint8),
                cu_seqlens=torch.tensor([0, 12, tokens - 4, tokens]),
                pixels=pixels,
                grids=grids,
            )
        )
    return made


def finish(total):
    """Mean over `total` targets, plus a little of the MTP layer's."""

    def loss(model, row, logits, seen):
        here = F.cross_entropy(
            logits[row.learned], row.targets[row.learned], reduction="sum"
        )
        layer = model.language_model.model.layers[-1]
        further = layer(row.ids, seen["output_attn_res"])
        here = here + 0.3 * F.cross_entropy(
            further[row.learned], row.targets[row.learned], reduction="sum"
        )
        return here / total

    return loss


def step(ranks, *, count=4, kind="1f1b", virtual=1, zero=3, compute=None):
    """(loss, whole gradients by name, norm, bytes sent) of `count` rows."""
    every = rows(count)
    total = sum(int(row.learned.sum()) for row in every)
    which, of = ranks.reader
    mine = every[which::of]
    stages = ranks.axis("pipeline")
    stage = pipeline.cut(model(), finish(total), stages.size, stages.rank, virtual)
    fsdp.shard(stage, ranks, zero=zero, compute=compute)
    losses = torch.zeros(())

    def notice(micro, loss, seen):
        if loss is not None:
            losses.add_(loss)

    pictures = [
        any(row.pixels is not None for row in every[m * of : (m + 1) * of])
        for m in range(len(mine))
    ]
    flow = Flow(stage, stages, mine, notice, pictures, dtype=compute or torch.float32)
    flow.run(schedule.actions(kind, stages.size, len(mine), virtual)[stages.rank])
    fsdp.release(stage)
    named = {n: p for n, p in stage.model.named_parameters() if p.requires_grad}
    whole = dict.fromkeys(named)
    for name, p in named.items():
        if isinstance(p.grad, fsdp.DTensor):
            whole[name] = p.grad.full_tensor()
    found = fsdp.gradients(stage, list(named.values()), ranks)
    for (name, p), g in zip(named.items(), found, strict=True):
        if not isinstance(p, fsdp.DTensor):
            whole[name] = g
    norm = fsdp.norm(list(named.values()), found, ranks)
    loss = float(ranks.axis("world").sum_(losses))
    return loss, whole, float(norm), flow.sent_bytes


def alone(**options):
    """The same on one rank, with PyTorch's kernels where casts ask for them."""
    return step(Ranks(), **options)
