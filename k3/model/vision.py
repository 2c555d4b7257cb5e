"""MoonViT-V2: patches of images and short clips to merged features."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from k3.config import VisionConfig
from k3.kernels import precision, rotary
from k3.model.linear import linear

Grid = tuple[int, int, int]


class ViTNorm(nn.Module):
    """RMSNorm without an eps of its own: the smallest step of the input's dtype."""

    def __init__(self, dim: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=dtype))

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalize the last dim of x."""
        # Without an eps torch takes that of the dtype it computes in, 2^16 times less.
        return F.rms_norm(x, x.shape[-1:], self.weight, torch.finfo(x.dtype).eps)


class PatchEmbed(nn.Module):
    """Patches to vectors, plus a position from the table and a time."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        D, size = config.vt_hidden_size, config.patch_size
        self.max_frames = config.init_pos_emb_time
        self.proj = nn.Conv2d(3, D, size, size, bias=False, dtype=dtype)
        self.pos_emb = PositionTable(config, dtype)

    def forward(
        self, pixels: Float[Tensor, "N 3 P P"], grids: list[Grid]
    ) -> Float[Tensor, "N D"]:
        """Embed the patches of all items, raster order (t, row, column) in each."""
        weight = self.proj.weight.flatten(1)
        x = pixels.flatten(1).to(weight.dtype) @ weight.T
        return x + torch.cat([self.pos_emb(grid) for grid in grids])


class PositionTable(nn.Module):
    """A learned table over rows and columns, stretched to the grid, and time."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        shape = (config.init_pos_emb_height, config.init_pos_emb_width)
        table = torch.empty(*shape, config.vt_hidden_size, dtype=dtype)
        self.weight = nn.Parameter(table)

    def forward(self, grid: Grid) -> Float[Tensor, "N D"]:
        """Positions of one item; only clips of several frames get a time."""
        t, h, w = grid
        table = precision.wide(self.weight)
        if (h, w) != table.shape[:2]:
            channels = table.permute(2, 0, 1)[None]
            grown = F.interpolate(channels, (h, w), mode="bilinear")
            table = grown[0].permute(1, 2, 0)
        places = table.flatten(0, 1).to(self.weight.dtype)
        if t == 1:
            return places
        times = time_embedding(t, places.shape[-1]).to(places)
        return (places[None] + times[:, None]).flatten(0, 1)


def time_embedding(frames: int, dim: int) -> Float[Tensor, "frames dim"]:
    """[sin | cos] of the frame index times 10000^(-i / (dim / 2))."""
    rates = 10000.0 ** (-torch.arange(dim // 2, dtype=torch.float64) / (dim // 2))
    angles = torch.arange(frames)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], -1)


def attend(
    x: Float[Tensor, "B N D"],
    wqkv: nn.Linear,
    wo: nn.Linear,
    heads: int,
    turn: Tensor | None,
) -> Float[Tensor, "B N D"]:
    """Full attention within each row of the batch, rotated by `turn` if given."""
    qkv = wqkv(x).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    q, k, v = qkv.unbind(0)  # [B heads N dim]
    if turn is not None:
        q, k = rotary.rotate(q, turn), rotary.rotate(k, turn)
    out = F.scaled_dot_product_attention(q, k, v)
    return wo(out.transpose(1, 2).flatten(2))


class MLP2(nn.Module):
    """fc1(gelu_tanh(fc0 x))."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        D, width = config.vt_hidden_size, config.vt_intermediate_size
        self.fc0, self.fc1 = linear(D, width, dtype), linear(width, D, dtype)

    def forward(self, x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Run both projections."""
        return self.fc1(F.gelu(self.fc0(x), approximate="tanh"))


class Block(nn.Module):
    """A pre-norm block: attention over an item, then the feed-forward.

    "joint" attends over all frames, rows and columns of an item at once, as
    released. "divided" is the article's: over the places of each frame, then,
    with weights of its own, over the frames of each place.
    """

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        D, qkv = config.vt_hidden_size, config.qkv_hidden_size
        self.heads, self.divided = (
            config.vt_num_attention_heads,
            config.attention == "divided",
        )
        self.norm0, self.norm1 = ViTNorm(D, dtype), ViTNorm(D, dtype)
        self.wqkv, self.wo = linear(D, 3 * qkv, dtype), linear(qkv, D, dtype)
        self.mlp = MLP2(config, dtype)
        if self.divided:
            self.norm_time = ViTNorm(D, dtype)
            self.wqkv_time = linear(D, 3 * qkv, dtype)
            self.wo_time = linear(qkv, D, dtype)

    def forward(
        self, x: Float[Tensor, "N D"], grids: list[Grid], turns: list[Tensor]
    ) -> Float[Tensor, "N D"]:
        """Run the block over all items; none sees another."""
        items = x.split([t * h * w for t, h, w in grids])
        mixed = [
            self._attend(item, grid, turn)
            for item, grid, turn in zip(items, grids, turns, strict=True)
        ]
        x = torch.cat(mixed)
        return x + self.mlp(self.norm1(x))

    def _attend(self, x: Tensor, grid: Grid, turn: Tensor) -> Tensor:
        frames = grid[0] if self.divided else 1
        x = x.unflatten(0, (frames, -1))
        turn = turn.unflatten(0, (frames, -1))[0]
        x = x + attend(self.norm0(x), self.wqkv, self.wo, self.heads, turn)
        if self.divided:
            x = x.transpose(0, 1)
            y = self.norm_time(x)
            x = x + attend(y, self.wqkv_time, self.wo_time, self.heads, None)
            x = x.transpose(0, 1)
        return x.flatten(0, 1)


class Encoder(nn.Module):
    """All blocks, the rotary positions they share, and the final norm."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.blocks = nn.ModuleList(
            Block(config, dtype) for _ in range(config.vt_num_hidden_layers)
        )
        self.final_layernorm = ViTNorm(config.vt_hidden_size, dtype)

    def forward(
        self, x: Float[Tensor, "N D"], grids: list[Grid]
    ) -> Float[Tensor, "N D"]:
        """Run embedded patches of all items through the blocks."""
        turns = [rotary.angles(grid, self.head_dim, x.device) for grid in grids]
        for block in self.blocks:
            x = block(x, grids, turns)
        return self.final_layernorm(x)


class VisionTower(nn.Module):
    """`vision_tower`: embed, encode, and merge 2 x 2 neighbourhoods over time."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        height, width = config.merge_kernel_size
        self.merge: tuple[int, int] = (height, width)
        self.max_frames = config.init_pos_emb_time
        self.patch_embed = PatchEmbed(config, dtype)
        self.encoder = Encoder(config, dtype)

    def forward(
        self, pixels: Float[Tensor, "N 3 P P"], grids: list[Grid]
    ) -> Float[Tensor, "M merged"]:
        """Return the merged vectors of all items in order."""
        x = self.encoder(self.patch_embed(pixels, grids), grids)
        items = x.split([t * h * w for t, h, w in grids])
        pairs = zip(items, grids, strict=True)
        return torch.cat([merge(item, grid, self.merge) for item, grid in pairs])


def merge(
    x: Float[Tensor, "N D"], grid: Grid, kernel: tuple[int, int]
) -> Float[Tensor, "M merged"]:
    """sd2_tpool: mean over frames, then each neighbourhood concatenated row first."""
    t, h, w = grid
    mh, mw = kernel
    mean = x.view(t, h // mh, mh, w // mw, mw, -1).mean(0)
    return mean.transpose(1, 2).flatten(0, 1).flatten(1)


class Projector(nn.Module):
    """`mm_projector`: proj.0, exact GELU, proj.2, RMSNorm."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype) -> None:
        super().__init__()
        merged, D = config.merged_hidden_size, config.text_hidden_size
        self.proj = nn.Sequential(
            linear(merged, merged, dtype), nn.GELU(), linear(merged, D, dtype)
        )
        self.post_norm = nn.RMSNorm(D, float(config.projector_ln_eps), dtype=dtype)

    def forward(self, x: Float[Tensor, "M merged"]) -> Float[Tensor, "M D"]:
        """Project merged vectors to the width of the text."""
        return self.post_norm(self.proj(x))
