"""All routed experts of a layer in one module, dense or packed in MXFP4."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3 import errors
from k3.config import TextConfig
from k3.kernels import choose, mx, mxfp8, situ
from k3.kernels.native import experts as native
from k3.kernels.native import experts_training as training
from k3.model import stored

BLOCK = 32
"""Weights that share one MXFP4 scale."""


class Experts(nn.Module):
    """Experts stacked over their number: w1 gate, w3 up [E F L], w2 down [E L F].

    "dequantized" holds them as parameters, which may be narrower than the trunk where
    they only answer (k3.model.stored), "packed" as MXFP4 bytes
    (`w1_packed`, `w1_scale`, ...), decoded expert by expert when used. A packed
    attribute may also be a list of tensors, one an expert, mapped from a file.
    In the state dict each expert has the checkpoint's own names; where only some are
    held, `first` is the number of the first.

    `activations` is "plain" or "mxfp8": then what enters their products is rounded to
    MXFP8, with the gradient of the identity.
    """

    w1: Tensor
    w2: Tensor
    w3: Tensor

    def __init__(self, config: TextConfig, dtype: torch.dtype, kind: str) -> None:
        super().__init__()
        if kind not in ("dequantized", "packed"):
            raise errors.RequestError(
                f"experts must be 'dequantized' or 'packed': got {kind!r}"
            )
        self.packed, self.dtype = kind == "packed", dtype
        self.activations = "plain"
        self.num_experts, self.first = config.num_experts, 0
        self.beta = float(config.activation_situ_beta)
        self.linear_beta = float(config.activation_situ_linear_beta)
        L, wide = config.routed_expert_hidden_size, config.moe_intermediate_size
        sizes = {"w1": (wide, L), "w2": (L, wide), "w3": (wide, L)}
        for name, (rows, columns) in sizes.items():
            shape = (self.num_experts, rows)
            if not self.packed:
                w = torch.empty(*shape, columns, dtype=dtype)
                self.register_parameter(name, nn.Parameter(w))
                continue
            packed = torch.zeros(*shape, columns // 2, dtype=torch.uint8)
            scale = torch.zeros(*shape, columns // BLOCK, dtype=torch.uint8)
            self.register_buffer(f"{name}_packed", packed)
            self.register_buffer(f"{name}_scale", scale)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow a cast of the model: packed bytes stay, their product changes."""
        probe = fn(torch.empty(0, dtype=self.dtype))
        self.dtype = probe.dtype if probe.is_floating_point() else self.dtype
        return super()._apply(fn, recurse)

    def for_pass(self) -> Callable[[int, Tensor], Tensor]:
        """Return the experts of one forward pass: `expert(number, rows)`.

        Where gradients will come, the stacks are split once: the gradient of a
        stack is then gathered once, and not filled anew for every expert used.
        """
        if self.packed or not (torch.is_grad_enabled() and self.w1.requires_grad):
            return self
        w1, w2, w3 = self.w1.unbind(0), self.w2.unbind(0), self.w3.unbind(0)
        return lambda e, x: self.run(x, w1[e], w2[e], w3[e])

    def grouped(
        self,
        z: Float[Tensor, "T L"],
        index: Int[Tensor, "T k"],
        weights: Float[Tensor, "T k"],
    ) -> Float[Tensor, "T L"] | None:
        """Return moe.combine of these experts by one kernel, None where none fits."""
        stacks = self._stacks()
        dense = [] if self.packed else list(stacks.values())
        narrow = self.activations == "mxfp8"
        if self._fits_triton(z, weights, stacks):
            from k3.kernels.triton import experts as triton

            caps = self.beta, self.linear_beta
            return triton.combine(z, index, weights, stacks, caps)
        if not choose.operation(z, weights, *dense) or z.dtype != self.dtype:
            return None
        narrower = any(x.dtype != z.dtype for x in dense)
        bytes_ = [stacks[name][0] for name in stacks if self.packed]
        if any(not x.is_cpu or not x.is_contiguous() for x in bytes_):
            return None
        caps = self.beta, self.linear_beta
        if choose.recorded(z, weights, *dense):
            if self.packed or narrower or torch.is_autocast_enabled("cpu"):
                return None
            z = mxfp8.straight_through(z) if narrow else z
            return training.combine(z, index, weights, stacks, caps, narrow=narrow)
        if narrow:
            return None
        return native.combine(z, index, weights, stacks, caps)

    def _fits_triton(self, z: Tensor, weights: Tensor, stacks: dict[str, Any]) -> bool:
        """Whether all lies on CUDA and nothing is recorded: it has no gradient."""
        held = stacks.values()
        dense = [] if self.packed else list(held)
        return (
            z.is_cuda
            and self.activations == "plain"
            and z.dtype == self.dtype
            and all(x.dtype == z.dtype for x in dense)
            and all(isinstance(x, Tensor) and x.is_cuda for x in held)
            and choose.triton(z, weights, *dense)
            and not choose.recorded(z, weights, *dense)
        )

    def _stacks(self) -> dict[str, Any]:
        """Return w1 .. w3, and where they are packed their scales s1 .. s3."""
        if not self.packed:
            return {name: getattr(self, name) for name in ("w1", "w2", "w3")}
        return {
            f"{letter}{i}": getattr(self, f"w{i}_{part}")
            for letter, part in (("w", "packed"), ("s", "scale"))
            for i in (1, 2, 3)
        }

    def weight(self, name: str, expert: int) -> Float[Tensor, "rows columns"]:
        """Return one matrix of one expert, decoded if it is packed."""
        if not self.packed:
            return getattr(self, name)[expert]
        packed, scale = getattr(self, f"{name}_packed"), getattr(self, f"{name}_scale")
        if self.dtype == torch.float16:
            # Its exponents do not reach all of MXFP4's, so the codec has no table.
            return mx.decode(packed[expert], scale[expert], torch.float32).half()
        return mx.decode(packed[expert], scale[expert], self.dtype)

    def forward(self, expert: int, x: Float[Tensor, "T L"]) -> Float[Tensor, "T L"]:
        """w2 SiTU(w1 x, w3 x) of one expert over its rows."""
        w1, w2, w3 = (self.weight(name, expert) for name in ("w1", "w2", "w3"))
        return self.run(x, w1, w2, w3)

    def run(
        self, x: Float[Tensor, "T L"], w1: Tensor, w2: Tensor, w3: Tensor
    ) -> Float[Tensor, "T L"]:
        """w2 SiTU(w1 x, w3 x) with the matrices of one expert."""
        narrow = self.activations == "mxfp8"
        x = mxfp8.straight_through(x) if narrow else x
        w1, w2, w3 = (stored.widened(w, x) for w in (w1, w2, w3))
        hidden = situ.situ(
            F.linear(x, w1), F.linear(x, w3), self.beta, self.linear_beta
        )
        hidden = mxfp8.straight_through(hidden) if narrow else hidden
        return F.linear(hidden, w2)

    def stored(self) -> dict[str, Sequence[Tensor] | Tensor]:
        """Return what is held, by the suffix of its name in the checkpoint."""
        if not self.packed:
            return {f"{w}.weight": getattr(self, w) for w in ("w1", "w2", "w3")}
        return {
            f"{w}.weight_{part}": getattr(self, f"{w}_{part}")
            for w in ("w1", "w2", "w3")
            for part in ("packed", "scale")
        }

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        for suffix, stack in self.stored().items():
            for e in range(self.num_experts):
                x = stack[e]
                name = f"{prefix}{self.first + e}.{suffix}"
                destination[name] = x if keep_vars else x.detach()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        _, strict, missing_keys, unexpected_keys, error_msgs = rest
        known = set()
        for suffix, stack in self.stored().items():
            for e in range(self.num_experts):
                name = f"{prefix}{self.first + e}.{suffix}"
                known.add(name)
                if name not in state_dict:
                    missing_keys.append(name)
                elif state_dict[name].shape != stack[e].shape:
                    got, want = tuple(state_dict[name].shape), tuple(stack[e].shape)
                    error_msgs.append(f"{name} must have shape {want}: got {got}")
                else:
                    with torch.no_grad():
                        stack[e].copy_(state_dict[name])
        extra = (n for n in state_dict if n.startswith(prefix) and n not in known)
        unexpected_keys.extend(extra if strict else ())
