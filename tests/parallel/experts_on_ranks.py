"""What a rank does with a model whose experts are spread over ranks."""

import small
import torch
import torch.nn.functional as F

from k3.config import K3Config
from k3.model import Model
from k3.model.moe import MoE
from k3.parallel import expert

RATE = 0.05


def config(**text):
    values = {"num_experts": 12, "num_experts_per_token": 3, "num_hidden_layers": 4}
    return small.config(linear=small.schedule(4), **values, **text)


def one_sided(model):
    """Draw every token to the last experts, all of one rank."""
    for module in model.modules():
        if isinstance(module, MoE):
            module.gate.e_score_correction_bias.data[-3:] += 1
    return model


def made(seed, dtype=torch.float64):
    return one_sided(small.model(dtype, config(), seed))


def rows(step, count, tokens=9):
    return small.ids(count, tokens + 1, seed=100 + step)


def loss_of(model, ids, total):
    logits = model(ids[:, :-1]).flatten(0, 1)
    return F.cross_entropy(logits, ids[:, 1:].flatten(), reduction="sum") / total


def train(model, batches, sum_=lambda name, g: g):
    """Plain gradient descent; (losses, gradients of the first step, weights)."""
    losses, first = [], {}
    for batch, total in batches:
        loss = loss_of(model, batch, total)
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


def trained(ranks, balanced, steps, seed=5):
    """A rank's part of the same descent: its rows, its experts."""
    axis = ranks.axis("expert")
    model = expert.split(made(seed), axis, balanced=balanced)
    batches = []
    for step in range(steps):
        all_ = rows(step, axis.size)
        batches.append((all_[axis.rank : axis.rank + 1], all_[:, 1:].numel()))

    def sum_(name, g):
        return g if ".experts.w" in name else axis.sum_(g)

    losses, gradients, weights = train(model, batches, sum_)
    found = [m.dispatch for m in model.modules() if isinstance(m, MoE)]
    told = [(d.peak_rows, d.peak_copies, dict(d.wire.sent_bytes)) for d in found]
    return axis.sum_(losses), gradients, weights, told


def packed(ranks, data, balanced):
    """Logits and the gradient of the embedding with experts in their MXFP4 bytes."""
    axis = ranks.axis("expert")
    model = Model(K3Config.from_dict(data), dtype=torch.float32, experts="packed")
    model.load_state_dict(packed_weights(model))
    one_sided(model)
    model = expert.split(model, axis, balanced=balanced)
    ids = rows(0, axis.size)[axis.rank : axis.rank + 1, :-1]
    logits = model(ids)
    logits.square().sum().backward()
    gradient = model.language_model.model.embed_tokens.weight.grad
    return logits.detach(), axis.sum_(gradient), list(model.state_dict())


def packed_weights(model):
    """The same random weights and bytes on every rank."""
    generator = torch.Generator().manual_seed(3)
    dense = small.model(torch.float32, model.config, 3).state_dict()
    state = model.state_dict()
    for name, x in state.items():
        if name in dense:
            state[name] = dense[name]
        if x.dtype == torch.uint8:
            low, high = (120, 124) if name.endswith("scale") else (0, 256)
            state[name] = torch.randint(
                low, high, x.shape, generator=generator, dtype=torch.uint8
            )
    return state


def idle(ranks):
    """No tokens at all: the exchanges still meet."""
    model = expert.split(made(5), ranks.axis("expert"))
    moe = next(m for m in model.modules() if isinstance(m, MoE))
    x = torch.zeros(1, 0, 26, dtype=torch.float64, requires_grad=True)
    out = moe(x)
    out.sum().backward()
    return out.shape, x.grad.shape


def uneven(ranks):
    """Ranks with different numbers of tokens: (what balanced says, plain's logits)."""
    axis = ranks.axis("expert")
    ids = small.ids(1, 5 + 3 * axis.rank)
    plain = expert.split(made(5), axis, balanced=False)
    logits = plain(ids).detach()
    try:
        expert.split(made(5), axis)(ids)
    except Exception as fault:
        return str(fault), logits
    return "", logits
