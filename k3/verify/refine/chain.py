"""The chain: packed graph = public state = running program, token by token.

The typed graph of one token is lowered to torch and run on the checkpoint's weights in
float64, on packed states of its own; the model runs beside it. After every token each
packed state must represent the running one and the logits must be equal: that is what
`scan.simulation` needs for all lengths. Windows of the graph hold layer inputs, newest
first, the running ones what the three projections make of them, oldest first.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from k3.graph import model as graph_model
from k3.graph import splice
from k3.graph.inputs import Inputs, Numbers
from k3.graph.term import Block
from k3.kernels import mx
from k3.model import DecodeState, Model
from k3.verify.lower import lower
from k3.verify.refine.check import Check
from k3.verify.streaming import relative

BOUND = 1e-9


def check(model: Model, ids: Sequence[int], wanted: float = BOUND) -> Check:
    """Run both, and compare logits and states after every token."""
    wide = copy.deepcopy(model).double()
    weights = _weights(wide)
    worst, first = 0.0, ""
    for name, token, error in _errors(wide, weights, ids):
        worst = max(worst, error)
        if error > wanted and not first:
            first = f"{name}, token {token}: relative {error:.1e}"
    detail = f"float64, {len(ids)} tokens, largest error {worst:.1e} "
    return Check(
        what="packed graph = public state = running program",
        kind="float",
        ok=not first,
        detail=f"{detail}(at most {wanted:.0e})",
        first=first,
    )


@torch.no_grad()
def _errors(
    model: Model, weights: Mapping[str, Tensor], ids: Sequence[int]
) -> Iterator[tuple[str, int, float]]:
    """(what, token, relative error) in the order of the computation."""
    text, inputs = model.config.text, Inputs()
    plan, numbers = graph_model.schedule(text), Numbers.of(text)
    outputs = graph_model.token(inputs, plan, splice.text(inputs), numbers)
    program = lower(Block("decoder_token", "one token", outputs))
    packed, running = _empty(model), model.init_state(1)
    for token, i in enumerate(ids):
        given = {**weights, **packed, "id": torch.tensor(i)}
        after = program(given, graph_model.sizes(text))
        logits, running = model.step(torch.tensor([[i]]), running)
        packed = {name: after[name] for name in packed}
        for name, got, want in _represented(weights, packed, running):
            yield name, token, relative(got, want)
        yield "logits", token, relative(logits[0, 0], after["logits"])


def _represented(
    weights: Mapping[str, Tensor], packed: Mapping[str, Tensor], running: DecodeState
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(name, running tensor, what the packed state says that it is)."""
    for name, value in running.pack().items():
        at, _, what = name.rpartition(".")
        if what == "state":
            yield name, value[0], packed[f"{at}.S"].mT
        elif what == "window":
            own = f"model.{at}.self_attn."
            down = torch.cat([weights[f"{own}{s}_proj.weight"] for s in "qkv"])
            # The graph's oldest row has left the running window.
            yield name, value[0], packed[f"{at}.window"][:-1].flip(0) @ down.mT
        elif what == "rows":
            both = [packed[f"{at}.{part}"] for part in ("latents", "shared")]
            yield name, value[0], torch.cat(both, -1)


def _empty(model: Model) -> dict[str, Tensor]:
    """Packed states before the first token."""
    text, out = model.config.text, {}
    linear = text.linear_attn_config
    for i in range(text.num_hidden_layers):
        if text.is_mla(i):
            shapes: dict[str, tuple[int, ...]] = {
                "latents": (0, text.kv_lora_rank),
                "shared": (0, text.qk_rope_head_dim),
            }
        else:
            shapes = {
                "S": (linear.num_heads, linear.head_dim, linear.v_dim),
                "window": (linear.short_conv_kernel_size, text.hidden_size),
            }
        for name, shape in shapes.items():
            out[f"layers.{i}.{name}"] = torch.zeros(shape, dtype=torch.float64)
    return out


def _weights(model: Model) -> dict[str, Tensor]:
    """Weights as the graph reads them: one array of all experts, MXFP4 decoded."""
    out: dict[str, Tensor] = {}
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for full, value in tensors.items():
        name = full.removeprefix("language_model.")
        if name.endswith("_packed"):
            scale = tensors[full.removesuffix("_packed") + "_scale"]
            dense = mx.decode(value, scale, torch.float64)
            out[f"{name.removesuffix('_packed')}.weight"] = dense
        elif ".experts.w" in name:
            out[f"{name}.weight"] = value.detach()
        else:
            out[name] = value.detach()
    return out
