"""The KDA layer: projections, short convolution, gate, memory, gated output."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from k3.config import TextConfig
from k3.kernels import choose, conv, kda, norm, precision
from k3.kernels.native import kda_layer as native
from k3.model.cache import KDACache
from k3.model.cache_spec import KDASpec
from k3.model.fp32 import KeepsFloat32, at_least_float32
from k3.model.inputs import Inputs
from k3.model.linear import RMSNorm, linear, project


class Conv1d(KeepsFloat32):
    """The weight [C 1 width] of a depthwise causal convolution."""

    fp32 = ("weight",)

    def __init__(self, channels: int, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, width, dtype=dtype))


class HeadNorm(KeepsFloat32, RMSNorm):
    """The output norm, one fp32 weight shared by all heads."""

    fp32 = ("weight",)


class KDA(KeepsFloat32):
    """Eq. 1-6 (section 2.1.1). `A_log` is held for the heads that exist."""

    fp32 = ("A_log", "dt_bias")

    def __init__(self, config: TextConfig, dtype: torch.dtype) -> None:
        super().__init__()
        c, D = config.linear_attn_config, config.hidden_size
        self.heads, self.K, self.V = c.num_heads, c.head_dim, c.v_dim
        self.lower_bound = c.gate_lower_bound
        keys, values = self.heads * self.K, self.heads * self.V
        wide, width = at_least_float32(dtype), c.short_conv_kernel_size
        self.q_proj = linear(D, keys, dtype)
        self.k_proj = linear(D, keys, dtype)
        self.v_proj = linear(D, values, dtype)
        self.q_conv1d = Conv1d(keys, width, wide)
        self.k_conv1d = Conv1d(keys, width, wide)
        self.v_conv1d = Conv1d(values, width, wide)
        self.A_log = nn.Parameter(torch.empty(self.heads, dtype=wide))
        self.A_log_stored = max(self.heads, self.K)
        self.dt_bias = nn.Parameter(torch.empty(keys, dtype=wide))
        self.f_a_proj = linear(D, self.K, dtype)
        self.f_b_proj = linear(self.K, keys, dtype)
        self.b_proj = linear(D, self.heads, dtype)
        self.g_proj = linear(D, values, dtype)
        self.o_norm = HeadNorm(self.V, float(config.rms_norm_eps), wide)
        self.o_proj = linear(values, D, dtype)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        cache: KDACache | None = None,
        lens: tuple[int, ...] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Run the layer over x, from `cache` if given, and leave its state there.

        With `lens` x holds packed sequences (B = 1), each with its own state.
        """
        cache = cache or self.init_cache(len(lens) if lens else x.shape[0], x)
        if self._fuses(x, cache):
            return project(self._fused(x, cache, lens), self.o_proj)[0]
        q, new, window = self._project(x, cache, lens)
        return self._output(x, cache.read(q, new, window, lens))

    def init_cache(self, sequences: int, like: Tensor, keep: int = 0) -> KDACache:
        """Return the empty memory and window of so many sequences."""
        spec = self.cache_spec(like.dtype)
        return KDACache(
            state=like.new_zeros(spec.state(sequences), dtype=spec.wide),
            window=like.new_zeros(spec.window(sequences)),
            keep=keep,
        )

    def cache_spec(self, dtype: torch.dtype) -> KDASpec:
        """Return what its cache's tensors are when the trunk has this dtype."""
        past = self.q_conv1d.weight.shape[-1] - 1
        wide = at_least_float32(dtype)
        return KDASpec(self.heads, self.V, self.K, past, wide=wide, trunk=dtype)

    def _project(
        self, x: Tensor, cache: KDACache, lens: tuple[int, ...] | None
    ) -> tuple[Tensor, Inputs, Tensor]:
        """Eq. 2 and 5: scaled queries, memory inputs, and the window after x."""
        raw = torch.cat(project(x, self.q_proj, self.k_proj, self.v_proj), -1)
        window = cache.before(raw)
        convs = (self.q_conv1d, self.k_conv1d, self.v_conv1d)
        weight = torch.cat([c.weight for c in convs])
        mixed, window = conv.short_conv(raw, weight, window, lens)
        keys = self.heads * self.K
        q, k = mixed[..., : 2 * keys].unflatten(-1, (2, self.heads, self.K)).unbind(-3)
        v = mixed[..., 2 * keys :].unflatten(-1, (self.heads, self.V))
        z = self.f_b_proj(self.f_a_proj(x)).unflatten(-1, (self.heads, self.K))
        bias = self.dt_bias.view(self.heads, self.K)
        new = Inputs(
            raw=raw,
            k=norm.l2_norm(k),
            v=precision.wide(v),
            g=kda.gate(z, self.A_log, bias, self.lower_bound),
            beta=torch.sigmoid(precision.wide(self.b_proj(x))),
        )
        return norm.l2_norm(q) * self.K**-0.5, new, window

    def _fuses(self, x: Tensor, cache: KDACache) -> bool:
        """Whether one native pass may do all between the projections and o_proj.

        It keeps no inputs for a rewind, and autograd could not follow it.
        """
        if cache.keep or torch.is_autocast_enabled("cpu"):
            return False
        weights = (*self._weights().tensors(), cache.state)
        return (
            choose.operation(x, cache.window)
            and x.dtype == cache.window.dtype
            and choose.operation(*weights, dtypes=choose.SINGLE)
            and not choose.recorded(x, cache.window, *self.parameters(), cache.state)
        )

    def _weights(self) -> native.Weights:
        convs = (self.q_conv1d, self.k_conv1d, self.v_conv1d)
        q, k, v = (c.weight for c in convs)
        return native.Weights(
            taps=(q, k, v),
            A_log=self.A_log,
            dt_bias=self.dt_bias,
            norm=self.o_norm.weight,
            eps=self.o_norm.eps,
            lower_bound=self.lower_bound,
        )

    def _fused(
        self, x: Tensor, cache: KDACache, lens: tuple[int, ...] | None
    ) -> Float[Tensor, "B T HV"]:
        """Eq. 1-6 without the projections; leaves memory and window in the cache."""
        narrow = self.f_a_proj, self.b_proj
        wide = self.q_proj, self.k_proj, self.v_proj, self.g_proj
        a, b, q, k, v, gate = project(x, *narrow, *wide)
        (z,) = project(a, self.f_b_proj)
        given = native.Projected(q=q, k=k, v=v, z=z, b=b, gate=gate)
        each = lens or (x.shape[1],) * x.shape[0]
        held = cache.window, cache.state
        out, cache.window, cache.state = native.run(given, self._weights(), *held, each)
        return out

    def _output(
        self, x: Float[Tensor, "B T D"], out: Float[Tensor, "B T H V"]
    ) -> Float[Tensor, "B T D"]:
        """Eq. 6: o_proj(RMSNorm(out) * sigmoid(gate)), the norm per head in fp32."""
        gate = self.g_proj(x)
        opened = torch.sigmoid(precision.wide(gate)).view(out.shape)
        return self.o_proj((self.o_norm(out) * opened).flatten(2).to(x.dtype))
