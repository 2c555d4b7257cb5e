"""Model: the whole of K3, text and optionally vision, and its contracts."""

import secrets
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3 import errors
from k3.config import K3Config
from k3.model import init, requests, stored
from k3.model.decode_state import DecodeState, whole
from k3.model.decode_step import Plans
from k3.model.decoder import LanguageModel
from k3.model.kda import KDA
from k3.model.linear import project
from k3.model.mla import MLA
from k3.model.splice import check_grids, splice
from k3.model.taps import Taps, in_step, record
from k3.model.vision import Projector, VisionTower


class Model(nn.Module):
    """Kimi K3. Submodules and parameters carry the checkpoint's names.

    `dtype` is that of the trunk; router bias, decay, convolution weights and the
    KDA output norm stay in fp32, and matrices may be held as they are stored.

    `weight_version`, below 2^63, marks the states this model makes. It starts at
    random, or from the files that were loaded, so another model's states are refused;
    a copy keeps it, init_weights and load_state_dict draw another, and whoever changes
    the weights otherwise raises it. Set it to let equal models exchange states.
    """

    def __init__(
        self,
        config: K3Config,
        *,
        dtype: torch.dtype = torch.bfloat16,
        device: torch.device | str = "cpu",
        experts: str = "dequantized",
    ) -> None:
        super().__init__()
        self.config, self.weight_version = config, secrets.randbits(62)
        self._plans = Plans()
        # What inference mode made could never take part in a backward pass.
        with torch.inference_mode(False), torch.device(device):
            self.language_model = LanguageModel(config.text, dtype, experts)
            if config.vision is not None:
                self.vision_tower = VisionTower(config.vision, dtype)
                self.mm_projector = Projector(config.vision, dtype)

    def init_weights(self, seed: int = 0) -> "Model":
        """Fill a fresh model with the initialization of init.init_; returns self."""
        generator = torch.Generator(self.device).manual_seed(seed)
        self.weight_version = secrets.randbits(62)
        std = float(self.config.text.initializer_range)
        with torch.no_grad():
            init.init_(self, std, generator)
        return self

    def load_state_dict(self, *args: Any, **options: Any) -> Any:
        """Take other weights; states made before belong to them no longer.

        Raises: RequestError where a stored matrix would round what it is given.
        """
        stored.refuse_rounding(self, args[0] if args else options["state_dict"])
        self.weight_version = secrets.randbits(62)
        return super().load_state_dict(*args, **options)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.language_model.lm_head.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The trunk's dtype; stored matrices may be narrower."""
        return self.language_model.model.norm.weight.dtype

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        *,
        state: DecodeState | None = None,
        features: Float[Tensor, "N D"] | None = None,
        cu_seqlens: Tensor | None = None,
        taps: Taps | None = None,
        logits: Literal["all", "last"] = "all",
    ) -> Tensor | tuple[Tensor, DecodeState]:
        """Logits [B T W] in fp32 or wider; with `state` also the state after ids.

        `features` replace the embeddings of media placeholders, in order. With
        `cu_seqlens` (B = 1) ids hold packed sequences, the state has one entry for
        each, and `logits="last"` gives [S 1 W]. `taps` is filled with named values.
        Raises: ShapeError, RequestError.
        """
        ids = requests.token_ids(ids, self.config.text.vocab_size, self.device)
        lens = requests.lengths(ids, cu_seqlens, logits)
        added = lens or (ids.shape[1],) * ids.shape[0]
        if state is not None:
            self._check_state(state, len(added))
        x = self.language_model.embed(ids)
        if features is not None:
            token = self.config.media_placeholder_token_id
            x = splice(x, ids, features, token)
        record(taps, "embed_tokens", x)
        caches = None if state is None else state.take()
        x = self.language_model.model(x, caches, lens, taps)
        if logits == "last":
            x = self._last(x, lens)
        (out,) = project(x, self.language_model.lm_head)
        out = out if out.dtype == torch.float64 else out.float()
        if state is None:
            return out
        return out, state.advance(added, packed=lens is not None)

    def step(
        self, ids: Int[Tensor, "B T"], state: DecodeState, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T W"], DecodeState]:
        """Run the next tokens of every sequence; the old handle is spent.

        `taps` is filled with the running sum behind each layer, `layers.N.out_prefix`
        [B T D], and what each router chose, `layers.N.block_sparse_moe.index` and
        `.weights` [B*T k].
        """
        known = self._plans.know(ids, state)
        if known:
            state.check(ids.shape[0], self.weight_version)
        else:
            ids = requests.token_ids(ids, self.config.text.vocab_size, self.device)
            self._check_state(state, ids.shape[0])
        plan = self._plans.take(self, ids, state, known)
        if plan is None:
            return self._whole(ids, state, taps)
        logits = plan.run(ids, state, taps, known)
        return logits, state.advance((ids.shape[1],) * state.batch, packed=False)

    def _whole(
        self, ids: Tensor, state: DecodeState, taps: Taps | None
    ) -> tuple[Tensor, DecodeState]:
        """A step on PyTorch; it fills the names that a native one does."""
        if taps is None:
            return self(ids, state=state)
        found: Taps = {}
        out = self(ids, state=state, taps=found)
        taps.update(in_step(found))
        return out

    def encode_images(
        self, pixel_values: Float[Tensor, "N 3 P P"], grids: Int[Tensor, "n 3"]
    ) -> Float[Tensor, "M D"]:
        """Features of all items in order: (h/2)(w/2) rows each, any number of frames.

        Patches come in raster order (frame, row, column). Raises: ShapeError.
        """
        if self.config.vision is None:
            raise errors.RequestError(
                "this checkpoint has no vision tower: got an image; load one whose "
                "config has a vision_config"
            )
        items = check_grids(pixel_values, grids, self.config.vision)
        if not items:
            width = self.config.text.hidden_size
            return pixel_values.new_zeros(0, width, dtype=self.dtype)
        return self.mm_projector(self.vision_tower(pixel_values, items))

    def init_state(self, batch: int, keep_inputs: int = 0) -> DecodeState:
        """Return the state of `batch` empty sequences.

        `keep_inputs` is the number of last tokens that `rewind` may take back.
        """
        batch = whole(batch, "init_state takes a whole number of sequences")
        keep_inputs = whole(keep_inputs, "keep_inputs is a whole number of tokens")
        if batch < 0 or keep_inputs < 0:
            raise errors.ShapeError(
                f"batch and keep_inputs must not be negative: got {batch} and "
                f"{keep_inputs}"
            )
        like = self.language_model.model.norm.weight
        caches = [
            m.init_cache(batch, like, keep_inputs)
            if isinstance(m, KDA)
            else m.init_cache(batch, like)
            for m in self._mixers()
        ]
        return DecodeState(
            caches,
            lens=(0,) * batch,
            keep_inputs=keep_inputs,
            weight_version=self.weight_version,
        )

    def _mixers(self) -> "list[KDA | MLA]":
        layers = self.language_model.model.layers[: self.config.text.num_hidden_layers]
        return cast("list[KDA | MLA]", [layer.self_attn for layer in layers])

    def _check_state(self, state: DecodeState, batch: int) -> None:
        """Refuse a state that init_state and passes of this model did not make."""
        if not isinstance(state, DecodeState):
            raise errors.RequestError(
                f"state must be a DecodeState: got a {type(state).__name__}; call "
                "init_state, or DecodeState.unpack for what pack returned"
            )
        state.check(batch, self.weight_version)
        specs = [mixer.cache_spec(self.dtype) for mixer in self._mixers()]
        state.check_caches(specs, self.device)

    @staticmethod
    def _last(x: Tensor, lens: tuple[int, ...] | None) -> Tensor:
        if lens is None:
            return x[:, -1:]
        ends = torch.tensor(lens, device=x.device).cumsum(0) - 1
        return x[0, ends][:, None]
