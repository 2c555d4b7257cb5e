"""The whole decoder in every form it runs in, against the spec's token by token.

The reference strings the spec's sublayers together in the order of Eq. 10, as
spec.model does, with more cut points: tests hold it to spec.model.run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from k3.model import Model, stored
from k3.spec import attn_res, norm, ops
from k3.spec import model as spec
from k3.spec.weights import under
from k3.verify.exact import cut
from k3.verify.exact.pairs import channel, layout
from k3.verify.exact.pairs.pair import Pair

Forward = Callable[..., Any]


class Runs(nn.Module):
    """A model and what is done with it, so that its weights can be drawn."""

    def __init__(self, model: Model, forward: Forward) -> None:
        super().__init__()
        stored.refuse(model, "exact arithmetic")
        self.model, self.body = model, forward

    def forward(self, **inputs: Any) -> Any:
        """Do it."""
        return self.body(self.model, **inputs)


def whole(model: Model, ids: Sequence[int]) -> Pair:
    """One pass over the sequence."""

    def forward(m: Model) -> Any:
        return m(torch.tensor([ids]))[0]

    return _pair("decoder, whole", model, forward, lambda run: run(ids))


def chunked(model: Model, ids: Sequence[int], sizes: Sequence[int]) -> Pair:
    """Pieces of the sequence one after another, on the state: prefill and decoding."""

    def forward(m: Model) -> Any:
        state, out = m.init_state(1), []
        for part in torch.tensor([ids]).split(list(sizes), 1):
            logits, state = m(part, state=state)
            out.append(logits)
        return torch.cat(out, 1)[0]

    return _pair(f"decoder in {list(sizes)}", model, forward, lambda run: run(ids))


def streaming(model: Model, ids: Sequence[int]) -> Pair:
    """Token by token: the recurrence and absorbed attention."""
    return chunked(model, ids, [1] * len(ids))


def packed(model: Model, sequences: Sequence[Sequence[int]]) -> Pair:
    """Several sequences behind one another in one row."""
    lens = [len(s) for s in sequences]
    flat = [token for s in sequences for token in s]

    def forward(m: Model) -> Any:
        ends = torch.tensor([0, *lens]).cumsum(0)
        return m(torch.tensor([flat]), cu_seqlens=ends)[0]

    def body(run: "Sequencer") -> Any:
        return ops.concat([run(s) for s in sequences])

    return _pair(f"decoder, packed {lens}", model, forward, body)


def speculative(
    model: Model, prompt: Sequence[int], draft: Sequence[int], after: Sequence[int]
) -> Pair:
    """Verify a draft in one pass, reject it all but one token, rewind, and go on."""

    def forward(m: Model) -> Any:
        _, state = m(torch.tensor([prompt]), state=m.init_state(1, keep_inputs=8))
        tried, state = m(torch.tensor([draft]), state=state)
        state = state.rewind(len(draft) - 1)
        logits, _ = m(torch.tensor([after]), state=state)
        return tried[0], logits[0]

    def body(run: "Sequencer") -> Any:
        _, states = run.advance(prompt, run.empty())
        tried, behind = run.advance(draft, states[-1])
        return tried, run.advance(after, behind[0])[0]

    return _pair("decoder, draft rejected", model, forward, body)


def features(model: Model, ids: Sequence[int], rows: Tensor) -> Pair:
    """Image rows in the places of placeholders."""
    token = model.config.media_placeholder_token_id
    reference = _reference(model, lambda run, rows: run(ids, rows, token))

    def forward(m: Model, rows: Tensor) -> Any:
        return m(torch.tensor([ids]), features=rows)[0]

    program = Runs(model, forward)
    return Pair("decoder with features", program, reference, {"rows": rows}, attach)


def _pair(name: str, model: Model, forward: Forward, body: Callable[..., Any]) -> Pair:
    return Pair(name, Runs(model, forward), _reference(model, body), {}, attach)


def _reference(model: Model, body: Callable[..., Any]) -> Callable[..., Any]:
    """A spec decoder on drawn weights, given to a body that runs sequences on it."""
    bytes_ = {n: b for n, b in model.named_buffers() if not b.is_floating_point()}

    def reference(
        weights: Mapping[str, Any], tap: cut.Tap = cut.keep, **inputs: Any
    ) -> Any:
        own = {n.removeprefix("model."): w for n, w in weights.items()}
        named = layout.checkpoint_names(own)
        named |= channel.decoded(named["model.norm.weight"], bytes_)
        return body(Sequencer(named, model, tap), **inputs)

    return reference


class Sequencer:
    """The spec's decoder over one sequence at a time, with taps."""

    def __init__(self, weights: Mapping[str, Any], model: Model, tap: cut.Tap) -> None:
        self.weights, self.config, self.tap = weights, model.config.text, tap

    def __call__(
        self, ids: Sequence[int], rows: Any = None, placeholder: int | None = None
    ) -> Any:
        """Logits [T W] of one sequence."""
        return self.advance(ids, self.empty(), rows, placeholder)[0]

    def empty(self) -> Any:
        """The states before the first token."""
        return spec.empty_states(self.weights, self.config)

    def advance(
        self,
        ids: Sequence[int],
        states: Any,
        rows: Any = None,
        placeholder: int | None = None,
    ) -> tuple[Any, list[Any]]:
        """Logits [T W] of more tokens, and the states after each of them."""
        table, out, behind = self.weights["model.embed_tokens.weight"], [], []
        for embedding in spec.embed(table, ids, rows, placeholder):
            depth, after = attn_res.start(embedding), []
            for i, state in enumerate(states):
                depth, state = self.layer(i, depth, state)
                after.append(state)
            states = after
            out.append(self.finish(depth))
            behind.append(states)
        return ops.stack(out), behind

    def layer(self, i: int, depth: Any, state: Any) -> tuple[Any, Any]:
        """Eq. 10: one token through layer i."""
        own, config = under(self.weights, f"model.layers.{i}."), self.config
        x = self.retrieve(i, own, depth, "self_attention_res", "input_layernorm")
        state, y = spec.mix_tokens(under(own, "self_attn."), config, state, x)
        depth = attn_res.add(depth, self.tap(f"layers.{i}.self_attn", y))
        x = self.retrieve(i, own, depth, "mlp_res", "post_attention_layernorm")
        y = spec.mix_channels(own, config, x)
        kind = "block_sparse_moe" if config.is_moe(i) else "mlp"
        depth = attn_res.add(depth, self.tap(f"layers.{i}.{kind}", y))
        total = self.tap(f"layers.{i}.out_prefix", depth.partial)
        depth = replace(depth, partial=total)
        return attn_res.finish_layer(depth, config.attn_res_block_size), state

    def retrieve(
        self, i: int, own: Mapping[str, Any], depth: Any, mixer: str, normed: str
    ) -> Any:
        """Eq. 8-10: a depth mix, unless only the embedding is there, and its norm."""
        eps = self.config.rms_norm_eps
        q = attn_res.query(own, mixer)
        h = attn_res.retrieve(q, attn_res.sources(depth), eps)
        h = self.tap(f"layers.{i}.{mixer}", h)
        x = norm.rms_norm(h, own[f"{normed}.weight"], eps)
        return self.tap(f"layers.{i}.{normed}", x)

    def finish(self, depth: Any) -> Any:
        """Eq. 8-9: the last mix, the norm and the head."""
        h = spec.final_hidden(self.weights, self.config, depth)
        h = self.tap("output_attn_res", h)
        scale = self.weights["model.norm.weight"]
        x = self.tap("norm", norm.rms_norm(h, scale, self.config.rms_norm_eps))
        return self.weights["lm_head.weight"] @ x


def attach(module: nn.Module, tap: cut.Tap) -> list[Any]:
    """Cut the decoder at its sublayers' inputs, norms, outputs, and running sums."""
    model: Any = module.model
    decoder, handles = model.language_model.model, []
    for i, layer in enumerate(decoder.layers[: decoder.num_layers]):
        at = f"layers.{i}."
        handles += [
            before(layer.input_layernorm, at + "self_attention_res", tap),
            after(layer.input_layernorm, at + "input_layernorm", tap),
            after(layer.self_attn, at + "self_attn", tap),
            before(layer.post_attention_layernorm, at + "mlp_res", tap),
            after(layer.post_attention_layernorm, at + "post_attention_layernorm", tap),
            _after_layer(layer, at + "out_prefix", tap),
        ]
        kind = "block_sparse_moe" if layer.sparse else "mlp"
        handles.append(after(getattr(layer, kind), at + kind, tap))
    handles.append(before(decoder.norm, "output_attn_res", tap))
    handles.append(after(decoder.norm, "norm", tap))
    return handles


def before(module: nn.Module, name: str, tap: cut.Tap) -> Any:
    """Cut at the first input of a module."""

    def hook(_: nn.Module, args: Any) -> Any:
        return (tap(name, args[0]), *args[1:])

    return module.register_forward_pre_hook(hook)


def after(module: nn.Module, name: str, tap: cut.Tap) -> Any:
    """Cut at the output of a module."""

    def hook(_: nn.Module, args: Any, out: Any) -> Any:
        return tap(name, out)

    return module.register_forward_hook(hook)


def _after_layer(layer: nn.Module, name: str, tap: cut.Tap) -> Any:
    """A layer returns nothing: its output is the running sum of the depth it got."""

    def hook(_: nn.Module, args: Any, out: Any) -> None:
        args[0].prefix = tap(name, args[0].prefix)

    return layer.register_forward_hook(hook)
