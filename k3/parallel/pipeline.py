"""Layers on several stages: between them go depth blocks and a running sum."""

from collections import UserDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from k3.data.packing import Row
from k3.kernels import attn_res
from k3.model import Model, stored
from k3.model.attn_res import Depth
from k3.model.decoder import Decoder
from k3.model.mtp import MTP
from k3.model.splice import splice
from k3.model.taps import record
from k3.parallel import layout
from k3.parallel.layout import Chunk

Finish = Callable[[Model, Row, Tensor, "Seen"], Tensor]
"""finish(model, row, logits, seen): the row's loss, on the last stage."""


class Seen(UserDict[str, Tensor]):
    """Named values of a pass. Not a dict, whose tensors FSDP2's hooks would replace.

    `pictures`: whether any rank's row has one; a tower in shards runs on all or none.
    """

    def __init__(self, *, pictures: bool = False) -> None:
        super().__init__()
        self.pictures = pictures


class Stage(nn.Module):
    """What one rank runs of a model: all of it, or its chunks of the layers.

    The model keeps the names of its parameters; modules of other stages are Identity.
    A pass begins in `forward` of this module, which FSDP2 takes for its root. `tied`
    names the parameter that the first and the last stage both hold, where MTP shares
    the embedding.
    """

    def __init__(
        self, model: Model, finish: Finish, chunks: tuple[Chunk, ...] | None = None
    ) -> None:
        super().__init__()
        self.model, self.finish = model, finish
        self.chunks = chunks or layout.chunks(model.config.text, 1)
        self.tied = ""

    def forward(
        self, index: int, row: Row, seen: Seen, given: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, ...]:
        """Run chunk `index` of this rank over a row.

        `given`: the depth blocks [1 T S D] so far and the running sum [1 T D], None
        for the first chunk. Returns the blocks completed here and the sum, or of the
        last chunk the loss.
        """
        chunk, decoder = self.chunks[index], self.model.language_model.model
        if given is None:
            depth = Depth(prefix=self._embed(row, seen), eps=decoder.eps)
        else:
            blocks, prefix = given
            depth = Depth(prefix=prefix, eps=decoder.eps)
            depth.blocks = blocks
            depth.scale = attn_res.inverse_rms(blocks, decoder.eps)
        assert depth.prefix is not None
        dtype, lens = depth.prefix.dtype, tuple(row.cu_seqlens.diff().tolist())
        for layer in decoder.layers[chunk.start : chunk.stop]:
            layer(depth, dtype, None, lens, seen)
        if chunk.last:
            return (self._loss(decoder, depth, dtype, row, seen),)
        assert depth.blocks is not None
        # A copy: FSDP2 warns of a view.
        return depth.blocks[..., chunk.held :, :].clone(), depth.prefix

    def _embed(self, row: Row, seen: Seen) -> Tensor:
        model = self.model
        x = model.language_model.embed(row.ids)
        token = model.config.media_placeholder_token_id
        if row.pixels is not None and row.grids is not None:
            x = splice(x, row.ids, model.encode_images(row.pixels, row.grids), token)
        elif seen.pictures:
            x = x + 0 * self._blank(row.ids.device).sum()
        record(seen, "embed_tokens", x)
        return x

    def _blank(self, device: torch.device) -> Tensor:
        """Features of one small grey picture."""
        vision = self.model.config.vision
        assert vision is not None
        (h, w), side = vision.merge_kernel_size, vision.patch_size
        pixels = torch.zeros(h * w, 3, side, side, device=device)
        return self.model.encode_images(pixels, torch.tensor([[1, h, w]]))

    def _loss(
        self,
        decoder: Decoder,
        depth: Depth,
        dtype: torch.dtype,
        row: Row,
        seen: Seen,
    ) -> Tensor:
        last = depth.retrieve(
            decoder.output_attn_res_norm, decoder.output_attn_res_proj, dtype
        )
        record(seen, "output_attn_res", last)
        logits = self.model.language_model.lm_head(decoder.norm(last))
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return self.finish(self.model, row, wide, seen)


def cut(
    model: Model, finish: Finish, stages: int = 1, rank: int = 0, virtual: int = 1
) -> Stage:
    """Keep of a model what a stage runs; the rest is given up."""
    stored.refuse(model, "a stage of a pipeline")
    parts = layout.chunks(model.config.text, stages, virtual)
    own = parts[rank::stages]
    decoder, layers = model.language_model.model, model.config.text.num_hidden_layers
    tied = _tied(decoder, own, layers) if stages > 1 else ""
    kept = {i for chunk in own for i in range(chunk.start, chunk.stop)}
    for i in set(range(layers)) - kept:
        decoder.layers[i] = nn.Identity()
    if not own[0].first:
        _drop(decoder, "embed_tokens")
        _drop(model, "vision_tower", "mm_projector")
    if not own[-1].last:
        for i in range(layers, len(decoder.layers)):
            decoder.layers[i] = nn.Identity()
        _drop(decoder, "output_attn_res_norm", "output_attn_res_proj", "norm")
        _drop(model.language_model, "lm_head")
    stage = Stage(model, finish, own)
    stage.tied = tied
    return stage


EMBEDDING = "language_model.model.embed_tokens.weight"


def _tied(decoder: Decoder, own: tuple[Chunk, ...], layers: int) -> str:
    """Return the name under which a stage holds an embedding that MTP shares."""
    last = decoder.layers[-1]
    if len(decoder.layers) == layers or not isinstance(last, MTP):
        return ""
    if last.embed_tokens.weight is not decoder.embed_tokens.weight:
        return ""
    if own[0].first:
        return EMBEDDING
    return f"language_model.model.layers.{layers}.embed_tokens.weight" * own[-1].last


def _drop(owner: nn.Module, *names: str) -> None:
    for name in names:
        if hasattr(owner, name):
            setattr(owner, name, nn.Identity())
