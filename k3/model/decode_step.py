"""The next tokens of every sequence through all layers in one native call.

A plan holds where the weights are; it is made anew when one of them has moved.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from k3.kernels import choose
from k3.kernels.native import decode, pages, product
from k3.model import requests
from k3.model.addresses import Addresses
from k3.model.decode_places import Places, usable
from k3.model.decode_state import DecodeState
from k3.model.taps import Taps, record
from k3.model.watched import Watched

if TYPE_CHECKING:
    from k3.model.model import Model

MAX_BATCH = 16
"""Sequences of a step; beyond it matrix products of PyTorch are the faster way."""

MAX_TOKENS = 16
"""Tokens of each that one call runs, a drafted block: beyond it PyTorch takes them."""

MAX_LAYERS = 250
"""Depth sources that the kernel has room for, less the running sum."""


class Plan:
    """A model's weights as the native step reads them."""

    def __init__(self, model: "Model") -> None:
        text = model.language_model
        self.watched = Watched(text)
        self.fits = self.watched.plain and text.model.num_layers <= MAX_LAYERS
        if not self.fits:
            return
        pages.own_code()
        pages.enlarge(self.watched.weights)
        self.dtype, matrices = self.watched.trunk, self.watched.matrices
        self.trunk = product.trunk(self.dtype, matrices)
        self.addresses = Addresses(text, model.config.text)
        kinds = [bool(layer.is_mla) for layer in self.addresses.layers]
        self.places = Places(self.addresses.sizes, kinds, self.dtype, MAX_BATCH)

    def run(
        self, ids: Tensor, state: DecodeState, taps: Taps | None, known: bool
    ) -> Tensor:
        """Return logits [B T W] and leave the state after ids in the caches.

        `known` says that `places` knows the state. Raises: RequestError for other ids,
        before anything is changed.
        """
        lens, (batch, tokens) = state.lens, ids.shape
        places, vocab = self.places, self.addresses.sizes.vocab
        # Whoever comes between, or comes after an exception, must not read half a step.
        state.spent, left = True, None
        if not (known and places.over(state, tokens)):
            left = places.room(batch)
            places.enter(state.take(), tokens, left)
        logits = torch.empty(batch, tokens, vocab, dtype=torch.float32)
        run = places.run
        if not (known and ids.is_contiguous()):
            ids = ids.to(torch.int64).contiguous()
        run.batch, run.tokens, run.threads = batch, tokens, torch.get_num_threads()
        places.lens[:batch] = list(lens)
        run.ids, run.logits = ids.data_ptr(), logits.data_ptr()
        run.sums = run.index = run.weights = None
        if taps is not None:
            self._tap(taps)
        decode.step(self.addresses.model, run, self.trunk)
        if run.refused:
            state.spent = False
            requests.token_ids(ids, vocab, ids.device)
        after = tuple(n + tokens for n in lens)
        if left is None:
            places.advance(state.caches, after)
        else:
            places.settle(state.caches, after, left)
        return logits

    def _tap(self, taps: Taps) -> None:
        """Name what a run is to leave of each layer."""
        run, z = self.places.run, self.addresses.sizes
        rows = z.layers, run.batch * run.tokens
        sums = torch.empty(z.layers, run.batch, run.tokens, z.D, dtype=self.dtype)
        index = torch.empty(*rows, z.active, dtype=torch.int64)
        weights = torch.empty(*rows, z.active, dtype=torch.float32)
        run.sums, run.index = sums.data_ptr(), index.data_ptr()
        run.weights = weights.data_ptr()
        for i, layer in enumerate(self.addresses.layers):
            record(taps, f"layers.{i}.out_prefix", sums[i])
            if layer.is_moe:
                record(taps, f"layers.{i}.block_sparse_moe.index", index[i])
                record(taps, f"layers.{i}.block_sparse_moe.weights", weights[i])


class Plans:
    """The plan of one model; a copy of the model makes its own."""

    def __init__(self) -> None:
        self._plan: Plan | None = None

    def __reduce__(self) -> Any:
        return Plans, ()

    def know(self, ids: Tensor, state: DecodeState) -> bool:
        """Whether the last native step left these very tensors, and ids may be ids."""
        return (
            self._plan is not None
            and self._plan.fits
            and type(state) is DecodeState
            and type(ids) is Tensor
            and ids.dtype is torch.int64
            and ids.dim() == 2
            and ids.is_cpu
            and self._plan.places.know(state)
        )

    def take(
        self, model: "Model", ids: Tensor, state: DecodeState, known: bool
    ) -> Plan | None:
        """Return the plan for a step over these, or None where PyTorch must run it."""
        most = min(MAX_TOKENS, state.keep_inputs or MAX_TOKENS)
        if not 0 < ids.shape[0] <= MAX_BATCH or not 0 < ids.shape[1] <= most:
            return None
        if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return None
        if not choose.native():
            return None
        if not known and not (_plain(ids) and all(map(usable, state.caches))):
            return None
        plan = self._plan
        if plan is None or not plan.watched.unchanged():
            plan = self._plan = Plan(model)
        return plan if plan.fits else None


def _plain(ids: Tensor) -> bool:
    return type(ids) in choose.PLAIN and ids.is_cpu
