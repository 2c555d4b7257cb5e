"""The inputs of a packed step by name: weights under the checkpoint's names, states."""

from dataclasses import dataclass, field

from k3.config import TextConfig
from k3.graph import primitives as p
from k3.graph.term import Number, Term, exact
from k3.spec import kda, mla, moe, norm, situ, vision


@dataclass(frozen=True, slots=True)
class Inputs:
    """Makes each input once; `under` looks at the names below a prefix."""

    prefix: str = ""
    made: dict[str, Term] = field(default_factory=dict)

    def under(self, prefix: str) -> "Inputs":
        """The inputs whose names start with a prefix."""
        return Inputs(self.prefix + prefix, self.made)

    def real(self, name: str, shape: str) -> Term:
        """A real input, the same node each time."""
        full = self.prefix + name
        if full not in self.made:
            self.made[full] = p.real(full, shape)
        return self.made[full]

    def integer(self, name: str, shape: str, below: str | None = None) -> Term:
        """An integer input, the same node each time."""
        full = self.prefix + name
        if full not in self.made:
            self.made[full] = p.integer(full, shape, below)
        return self.made[full]


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """The constants of a configuration; the defaults are the release's."""

    eps: Number = norm.EPS
    latent_eps: Number = mla.LATENT_EPS
    l2_eps: Number = norm.L2_EPS
    vision_eps: Number = vision.EPS
    # None is the unbounded gate of Kimi-Linear.
    floor: Number | None = kda.FLOOR
    beta: Number = situ.BETA
    linear: Number = situ.LINEAR_BETA
    scaling: Number = 1
    tiny: Number = moe.TINY
    absorb: bool = False
    full_rank_gate: bool = True

    @classmethod
    def of(cls, config: TextConfig) -> "Numbers":
        """The constants of one configuration."""
        linear = config.linear_attn_config
        return cls(
            eps=exact(config.rms_norm_eps),
            floor=linear.gate_lower_bound,
            beta=exact(config.activation_situ_beta),
            linear=exact(config.activation_situ_linear_beta),
            scaling=exact(config.routed_scaling_factor),
            full_rank_gate=linear.use_full_rank_gate,
        )


RELEASED = Numbers()
