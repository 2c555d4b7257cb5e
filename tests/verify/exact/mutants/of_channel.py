"""Mutants of what works on one token: norms, SiTU, router, experts, depth, head."""

from mutants.patch import Edit, Mutant

SITU, MOE = "k3.kernels.situ:situ", "k3.kernels.moe:"
LAYER, DEPTH = "k3.model.decoder:Layer.forward", "k3.kernels.attn_res:mix"
EXPERTS = "block_sparse_moe"


def edit(name, where, old, new, at):
    return Mutant(name, Edit(where, old, new), at)


MUTANTS = [
    edit(
        "RMSNorm eps 1e-6",
        "k3.model.linear:RMSNorm.forward",
        "self.eps",
        "1e-6",
        "input_layernorm",
    ),
    edit(
        "sigmoid of the capped gate",
        SITU,
        "torch.sigmoid(g)",
        "torch.sigmoid(beta * torch.tanh(g / beta))",
        "mlp",
    ),
    edit(
        "up capped like the gate",
        SITU,
        "torch.tanh(u / linear) * (beta * linear)",
        "torch.tanh(u / beta) * (beta * beta)",
        "mlp",
    ),
    edit(
        "up not capped",
        SITU,
        "torch.tanh(u / linear) * (beta * linear)",
        "u * beta",
        "mlp",
    ),
    edit(
        "gate not capped",
        SITU,
        "torch.tanh(g / beta) * torch",
        "(g / beta) * torch",
        "mlp",
    ),
    edit(
        "gate and up swapped",
        "k3.model.mlp:MLP.forward",
        "situ.situ(gate, up,",
        "situ.situ(up, gate,",
        "mlp",
    ),
    edit(
        "expert gate and up swapped",
        "k3.model.experts:Experts.run",
        "F.linear(x, w1), F.linear(x, w3)",
        "F.linear(x, w3), F.linear(x, w1)",
        EXPERTS,
    ),
    edit(
        "biased score in the mixture",
        MOE + "choose",
        "s.gather(-1, index)",
        "(s + bias).gather(-1, index)",
        EXPERTS,
    ),
    edit(
        "choice ignores the bias",
        MOE + "choose",
        "top_k(s.detach() + bias, k)",
        "top_k(s.detach(), k)",
        EXPERTS,
    ),
    edit(
        "mixture not normalised",
        MOE + "choose",
        " / (chosen.sum(-1, keepdim=True) + 1e-20)",
        "",
        EXPERTS,
    ),
    edit("router without its 1e-20", MOE + "choose", " + 1e-20", "", EXPERTS),
    edit("scaling factor dropped", MOE + "choose", " * scaling", "", EXPERTS),
    edit(
        "softmax router",
        MOE + "scores",
        "torch.sigmoid(rows @ precision.wide(weight).T)",
        "torch.softmax(rows @ precision.wide(weight).T, -1)",
        EXPERTS,
    ),
    edit(
        "one expert too few",
        "k3.model.moe:MoE.forward",
        "bias, self.k,",
        "bias, self.k - 1,",
        EXPERTS,
    ),
    edit(
        "weight of the unsorted slot",
        MOE + "combine",
        "weights.flatten()[order, None]",
        "weights.flatten()[:, None]",
        EXPERTS,
    ),
    edit(
        "decoding: weights out of order",
        MOE + "combine",
        "weights[0][order]",
        "weights[0]",
        EXPERTS,
    ),
    edit(
        "latent norm missing",
        "k3.model.moe:MoE.forward",
        "self.routed_expert_norm(mixed)",
        "mixed",
        EXPERTS,
    ),
    edit(
        "shared expert missing",
        "k3.model.moe:MoE.forward",
        " + self.shared_experts(x)",
        "",
        EXPERTS,
    ),
    edit(
        "depth score over sqrt(D)",
        DEPTH,
        "(blocks @ query) * scale",
        "(blocks @ query) * scale * blocks.shape[-1] ** -0.5",
        "mlp_res",
    ),
    edit(
        "depth mixes normed sources",
        DEPTH,
        "past = (p[..., :-1].unsqueeze(-2) @ blocks)",
        "past = (p[..., :-1].unsqueeze(-2) @ (blocks * scale[..., None]))",
        "mlp_res",
    ),
    edit(
        "depth key norm without weight",
        "k3.kernels.attn_res:fold_query",
        "precision.wide(norm_weight) * precision.wide(proj_weight)[0]",
        "precision.wide(proj_weight)[0]",
        "mlp_res",
    ),
    edit(
        "depth eps missing",
        "k3.kernels.attn_res:inverse_rms",
        ".mean(-1) + eps",
        ".mean(-1)",
        "mlp_res",
    ),
    edit(
        "block boundary one layer late",
        LAYER,
        "if self.starts_block:",
        "if self.name[-1] == '1':",
        "mlp_res",
    ),
    edit(
        "channel query is the token query",
        LAYER,
        "depth.retrieve(self.mlp_res_norm, self.mlp_res_proj, dtype)",
        "depth.retrieve(self.self_attention_res_norm, "
        "self.self_attention_res_proj, dtype)",
        "mlp_res",
    ),
    edit(
        "extra residual",
        LAYER,
        "depth.add(y)\n    assert",
        "depth.add(y + h)\n    assert",
        "out_prefix",
    ),
    edit(
        "mixer takes the retrieval unnormed",
        LAYER,
        "self.self_attn(self.input_layernorm(h), ",
        "self.self_attn(h + 0 * self.input_layernorm(h), ",
        "self_attn",
    ),
    edit(
        "two KDA layers swapped",
        "k3.model.decoder:Decoder.forward",
        "enumerate(self.layers[: self.num_layers])",
        "((j, self.layers[j]) for j in (0, 2, 1, 3))",
        "layers.",
    ),
    edit(
        "final retrieval missing",
        "k3.model.decoder:Decoder.forward",
        "return self.norm(last)",
        "return self.norm(depth.prefix)",
        "output_attn_res",
    ),
    edit(
        "final norm missing",
        "k3.model.decoder:Decoder.forward",
        "return self.norm(last)",
        "return last + 0 * self.norm(last)",
        "out",
    ),
]
