"""Pieces of the vision tower: rotation, attention, stretched positions, the merge."""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from k3.kernels import rotary
from k3.model import vision
from k3.spec import vision as spec
from k3.spec import vision_position as position
from k3.verify.exact.pairs.pair import Shadows
from k3.verify.operators.operator import Operator, Reading, Values, changed

GRID = (2, 4, 6)
PLACES = GRID[0] * GRID[1] * GRID[2]
HEADS, WIDTH = 2, 8


def _turn(draw: Shadows) -> Tensor:
    return rotary.angles(GRID, WIDTH, torch.device("cpu"))


def _rotate(x: Tensor, turn: Tensor) -> Tensor:
    return rotary.rotate(x[None, None], turn)[0, 0]


ROTATE = Operator(
    name="vision.rotate",
    says="adjacent channels (a, b) turned: (a cos - b sin, a sin + b cos)",
    program=_rotate,
    reference=position.rotate,
    draw=lambda draw: {"x": draw.normal(PLACES, WIDTH), "turn": _turn(draw)},
    layouts={"x": "N d", "turn": "N d/2", "y": "N d"},
    outputs=("y",),
    readings=(
        Reading("negating the angles", changed(turn=torch.neg)),
        Reading(
            "rotating channel i with i + d/2: halves instead of neighbours",
            changed(x=lambda x: torch.cat([x[:, ::2], x[:, 1::2]], 1)),
            changed(y=lambda y: torch.stack(y.chunk(2, 1), -1).flatten(1)),
        ),
    ),
)


class Attention(nn.Module):
    """The tower's attention with its two maps, whose weights are given at the call."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wqkv = nn.Linear(width, 3 * width, bias=False, device="meta")
        self.wo = nn.Linear(width, width, bias=False, device="meta")

    def forward(self, x: Tensor, turn: Tensor) -> Tensor:
        """Rows [N D] to rows [N D]."""
        return vision.attend(x[None], self.wqkv, self.wo, HEADS, turn)[0]


@cache
def _layer() -> Attention:
    return Attention(HEADS * WIDTH)


def _draw_attention(draw: Shadows) -> Values:
    # Made outside of exact arithmetic, which has no meta device.
    D = _layer().wo.in_features
    return {
        "x": draw.normal(10, D),
        "wqkv": draw.normal(3 * D, D) / 4,
        "wo": draw.normal(D, D) / 4,
        "turn": rotary.angles((1, 2, 5), WIDTH, torch.device("cpu")),
    }


def _attend(x: Tensor, wqkv: Tensor, wo: Tensor, turn: Tensor) -> Tensor:
    weights = {"wqkv.weight": wqkv, "wo.weight": wo}
    result: Tensor = torch.func.functional_call(_layer(), weights, (x, turn))
    return result


def _attended(x: Any, wqkv: Any, wo: Any, turn: Any) -> Any:
    return spec.attend(wqkv, wo, x, HEADS, turn)


ATTEND = Operator(
    name="vision.attend",
    says="full attention among rows, two heads, queries and keys turned",
    program=_attend,
    reference=_attended,
    draw=_draw_attention,
    layouts={
        "x": "N D",
        "wqkv": "3 heads d, D",
        "wo": "D, heads d",
        "turn": "N d/2",
        "y": "N D",
    },
    outputs=("y",),
    readings=(Reading("negating the angles", changed(turn=torch.neg)),),
)


def _merge(x: Tensor, grid: tuple[int, int, int]) -> Tensor:
    return vision.merge(x, grid, (2, 2))


MERGE = Operator(
    name="vision.merge",
    says="mean over frames, then each 2 x 2 neighbourhood side by side, row first",
    program=_merge,
    reference=spec.merge,
    draw=lambda draw: {"x": draw.normal(PLACES, 5), "grid": GRID},
    layouts={"x": "t h w, D", "grid": "t h w", "y": "h/2 w/2, 4 D"},
    outputs=("y",),
)


def _stretch(table: Tensor, h: int, w: int) -> Tensor:
    channels = table.permute(2, 0, 1)[None]
    grown = nn.functional.interpolate(channels, (h, w), mode="bilinear")
    return grown[0].permute(1, 2, 0).flatten(0, 1)


STRETCH = Operator(
    name="vision.stretch",
    says="the position table at another grid: bilinear, half-pixel centres",
    program=_stretch,
    reference=position.stretch,
    draw=lambda draw: {"table": draw.normal(4, 5, 3), "h": 6, "w": 3},
    layouts={"table": "rows columns D", "y": "h w, D: raster order"},
    outputs=("y",),
)

OPERATORS = (ROTATE, ATTEND, MERGE, STRETCH)
