"""The Gated MLA layer: latent queries, latent rows, no positions, gated output."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from k3.config import TextConfig
from k3.kernels import mla, precision, segments
from k3.model import stored
from k3.model.cache import MLACache
from k3.model.cache_spec import MLASpec
from k3.model.linear import RMSNorm, linear, project

LORA_EPS = 1e-6
"""The two latent norms are built without an eps and take this default."""


class MLA(nn.Module):
    """Eq. 7. The cache holds one row a token: normed latent and raw shared key.

    `watch(q, k)`, if set, is shown the queries and keys of every pass with gradients;
    with `wide_output` the attention's output of such a pass stays fp32 (pre-training).
    """

    watch: Callable[[Tensor, Tensor], None] | None = None
    wide_output = False

    def __init__(self, config: TextConfig, dtype: torch.dtype) -> None:
        super().__init__()
        D, heads = config.hidden_size, config.num_attention_heads
        self.heads, self.nope = heads, config.qk_nope_head_dim
        self.rope, self.V = config.qk_rope_head_dim, config.v_head_dim
        self.latent = config.kv_lora_rank
        self.scale = (self.nope + self.rope) ** -0.5
        self.q_a_proj = linear(D, config.q_lora_rank, dtype)
        self.q_a_layernorm = RMSNorm(config.q_lora_rank, LORA_EPS, dtype)
        self.q_b_proj = linear(
            config.q_lora_rank, heads * (self.nope + self.rope), dtype
        )
        self.kv_a_proj_with_mqa = linear(D, self.latent + self.rope, dtype)
        self.kv_a_layernorm = RMSNorm(self.latent, LORA_EPS, dtype)
        self.kv_b_proj = linear(self.latent, heads * (self.nope + self.V), dtype)
        self.g_proj = linear(D, heads * self.V, dtype)
        self.o_proj = linear(heads * self.V, D, dtype)

    def forward(
        self,
        x: Float[Tensor, "B T width"],
        cache: MLACache | None = None,
        lens: tuple[int, ...] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Attend from x to all tokens of its sequence, and append its rows."""
        a, row, gate = project(x, self.q_a_proj, self.kv_a_proj_with_mqa, self.g_proj)
        (q,) = project(self.q_a_layernorm(a), self.q_b_proj)
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B H T dim]
        rows = self._rows(row)
        if cache is not None:
            cache.append(rows, lens)
        if lens is not None:
            out = self._packed(q, rows, cache, lens)
        elif cache is None or segments.same(cache.lens, (x.shape[1],) * x.shape[0]):
            out = self._expanded(q, rows)
        elif self._absorbing_is_cheaper(x.shape[1]):
            out = self._absorbed(q, cache)
        else:
            out = self._each(q, cache)
        out = out.transpose(1, 2).flatten(2)
        out = (out * torch.sigmoid(precision.wide(gate))).to(x.dtype)
        return project(out, self.o_proj)[0]

    def init_cache(self, sequences: int, like: Tensor) -> MLACache:
        """Return the empty rows of so many sequences."""
        rows = like.new_zeros(sequences, 0, self.cache_spec(like.dtype).width)
        return MLACache(rows=rows, lens=(0,) * sequences)

    def cache_spec(self, dtype: torch.dtype) -> MLASpec:
        """Return what its rows are when the trunk has this dtype."""
        return MLASpec(self.latent + self.rope, trunk=dtype)

    def _rows(self, c: Float[Tensor, "B T row"]) -> Float[Tensor, "B T row"]:
        """Return what the cache holds of these rows: the latent part is normed."""
        latent = self.kv_a_layernorm(c[..., : self.latent])
        return torch.cat([latent, c[..., self.latent :]], -1)

    def _absorbing_is_cheaper(self, num_tokens: int) -> bool:
        """Compare multiply-adds a context row and head: absorbed against expanded."""
        expand = self.latent * (self.nope + self.V)
        more = 2 * self.latent - self.nope - self.V
        return num_tokens * more <= expand

    def _expanded(
        self, q: Float[Tensor, "B H T dim"], rows: Float[Tensor, "B S row"]
    ) -> Float[Tensor, "B H T V"]:
        """Write out every head's keys and values, a workspace at a time."""
        S = rows.shape[1]
        if S <= max(mla.WORKSPACE_TOKENS, q.shape[2]):
            kv, shared = self._written_out(rows)
            if torch.is_grad_enabled():
                if self.watch is not None:
                    k, _ = mla.heads(kv, shared, q.shape[-1])
                    self.watch(q.detach(), k.detach())
                if self.wide_output:
                    q, kv, shared = map(precision.wide, (q, kv, shared))
            return mla.attend_heads(q, kv, shared, self.scale)

        def read(start: int, stop: int) -> tuple[Tensor, Tensor]:
            return self._keys_and_values(rows[:, start:stop])

        return mla.attend_in_passes(q, read, S, self.scale)

    def _keys_and_values(
        self, rows: Float[Tensor, "B S row"]
    ) -> tuple[Float[Tensor, "B H S dim"], Float[Tensor, "B H S V"]]:
        return mla.heads(*self._written_out(rows), self.nope + self.rope)

    def _written_out(
        self, rows: Float[Tensor, "B S row"]
    ) -> tuple[Float[Tensor, "B S H both"], Float[Tensor, "B S rope"]]:
        """Return keys and values of the latents for each head, and the shared keys."""
        (kv,) = project(rows[..., : self.latent], self.kv_b_proj)
        return kv.unflatten(-1, (self.heads, -1)), rows[..., self.latent :]

    def _absorbed(
        self, q: Float[Tensor, "B H T dim"], cache: MLACache
    ) -> Float[Tensor, "B H T V"]:
        """Move kv_b into the query and the output, and attend over latent rows."""
        W = stored.widened(self.kv_b_proj.weight, q)
        W = W.view(self.heads, -1, self.latent)
        latent = q[..., : self.nope] @ W[:, : self.nope]
        query = torch.cat([latent, q[..., self.nope :]], -1)
        out = mla.absorbed(
            query,
            cache.rows,
            cache.table,
            cache.lens,
            latent_dim=self.latent,
            scale=self.scale,
        )
        return out @ W[:, self.nope :].mT

    def _each(self, q: Tensor, cache: MLACache) -> Tensor:
        """Expand sequence by sequence: their contexts differ in length."""
        outs = [self._expanded(q[b : b + 1], cache.of(b)[None]) for b in range(len(q))]
        return torch.cat(outs)

    def _packed(
        self, q: Tensor, rows: Tensor, cache: MLACache | None, lens: tuple[int, ...]
    ) -> Tensor:
        """Attend within each packed sequence, over its cached context if it has one."""
        outs = []
        own = rows[0].split(list(lens))
        for b, part in enumerate(q.split(list(lens), 2)):
            if lens[b]:
                row = own[b] if cache is None else cache.of(b)
                outs.append(self._expanded(part, row[None]))
        shape = (*q.shape[:-1], self.V)
        return torch.cat(outs, 2) if outs else q.new_zeros(shape)
