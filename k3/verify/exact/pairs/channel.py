"""What works on one token: norms, SiTU, AttnRes, the router and LatentMoE."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from k3.config import TextConfig
from k3.kernels import attn_res, norm, situ
from k3.spec import attn_res as spec_attn_res
from k3.spec import moe as spec_moe
from k3.spec import mx as spec_mx
from k3.spec import norm as spec_norm
from k3.spec import ops
from k3.spec import situ as spec_situ
from k3.verify.exact.pairs import layout
from k3.verify.exact.pairs.pair import Pair, Shadows

EPS = 1e-5


def rms_norm(eps: float = EPS) -> Pair:
    """kernels.norm.rms_norm against Eq. 6, 8 and 11."""
    draw = Shadows(7)
    return Pair(
        "norm.rms_norm",
        lambda x, weight: norm.rms_norm(x, weight, eps),
        lambda x, weight: spec_norm.rms_norm(x, weight, eps),
        {"x": draw.normal(3, 2, 7), "weight": draw.normal(7)},
    )


def situ_pair(beta: float = 4.0, linear: float = 25.0) -> Pair:
    """kernels.situ.situ against Eq. 12."""
    draw = Shadows(8)
    return Pair(
        "situ.situ",
        lambda gate, up: situ.situ(gate, up, beta, linear),
        lambda gate, up: spec_situ.situ(gate, up, beta, linear),
        {"gate": draw.normal(5, 3), "up": draw.normal(5, 3)},
    )


def mix(sources: int = 4, running: bool = True) -> Pair:
    """kernels.attn_res.mix against Eq. 8 and 9."""
    draw = Shadows(9)
    given = {
        "blocks": draw.normal(2, sources, 7),
        "prefix": draw.normal(2, 7),
        "weight": draw.normal(7),
        "proj": draw.normal(1, 7),
    }

    def program(blocks: Any, prefix: Any, weight: Any, proj: Any) -> Any:
        scale = attn_res.inverse_rms(blocks, EPS)
        query = attn_res.fold_query(weight, proj)
        last = prefix if running else None
        return attn_res.mix(blocks, scale, last, query, EPS)

    def reference(blocks: Any, prefix: Any, weight: Any, proj: Any) -> Any:
        named = {"mlp_res_norm.weight": weight, "mlp_res_proj.weight": proj}
        q, out = spec_attn_res.query(named, "mlp_res"), []
        for b in range(2):
            last = [prefix[b][None]] if running else []
            out.append(spec_attn_res.retrieve(q, ops.concat([blocks[b], *last])))
        return ops.stack(out)

    return Pair("attn_res.mix", program, reference, given)


def moe(module: nn.Module, config: TextConfig, tokens: int = 6) -> Pair:
    """A LatentMoE layer, dense or packed in MXFP4, against Eq. 11 and 13."""
    bytes_ = {n: b for n, b in module.named_buffers() if not b.is_floating_point()}
    given = {"x": Shadows(10).normal(1, tokens, config.hidden_size)}

    def reference(weights: Any, x: Any) -> Any:
        named = layout.checkpoint_names(weights) | decoded(x, bytes_)
        rows = [
            spec_moe.layer(
                named,
                x[0, t],
                config.num_experts_per_token,
                scaling=config.routed_scaling_factor,
                beta=config.activation_situ_beta,
                linear=config.activation_situ_linear_beta,
                eps=config.rms_norm_eps,
            )
            for t in range(tokens)
        ]
        return ops.stack(rows)[None]

    return Pair("LatentMoE layer", module, reference, given)


def decoded(like: Any, packed: Mapping[str, Any]) -> dict[str, Any]:
    """MXFP4 bytes of stacked experts as the spec reads them, one matrix an expert."""
    out: dict[str, Any] = {}
    for name, stack in packed.items():
        if not name.endswith("_packed"):
            continue
        scales = packed[name.removesuffix("_packed") + "_scale"]
        stem, _, last = name.removesuffix("_packed").rpartition(".")
        short = stem.removeprefix("language_model.")
        for e, (matrix, scale) in enumerate(zip(stack, scales, strict=True)):
            pairs = zip(matrix.tolist(), scale.tolist(), strict=True)
            rows = [spec_mx.decode_row(codes, sizes) for codes, sizes in pairs]
            out[f"{short}.{e}.{last}.weight"] = like.run.constant(rows)
    return out
