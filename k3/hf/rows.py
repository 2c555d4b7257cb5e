"""What attention_mask means here: a masked token is not there.

K3 uses no positions, so rows of different lengths are packed without their padding
and the answers are put back to their columns.
"""

import torch
from torch import Tensor

from k3.errors import RequestError


def new_columns(mask: Tensor | None, ids: Tensor, seen: int) -> Tensor | None:
    """Return the mask [B T] of the new tokens as bool, None where all are there.

    Raises: RequestError for a mask of another shape.
    """
    if mask is None:
        return None
    batch, tokens = ids.shape
    if mask.dim() != 2 or tuple(mask.shape) not in (
        (batch, tokens),
        (batch, seen + tokens),
    ):
        raise RequestError(
            f"attention_mask is [batch, tokens] or [batch, past + tokens]: got "
            f"{tuple(mask.shape)} for ids {tuple(ids.shape)} after {seen}; pass what "
            "the tokenizer gave"
        )
    new = mask[:, mask.shape[1] - tokens :].to(ids.device).bool()
    return None if bool(new.all()) else new


def ends(new: Tensor) -> Tensor:
    """Return the boundaries [B + 1] of the packed sequences of a mask."""
    return torch.nn.functional.pad(new.sum(1), (1, 0)).cumsum(0)


def spread(packed: Tensor, new: Tensor) -> Tensor:
    """Put packed logits [N W] back to [B T W].

    A masked column after a token repeats that token's logits, so the last column
    is what the sequence goes on with on either side of the padding; columns before
    the first token are zero.
    """
    count = new.cumsum(1)
    place = count - 1 + ends(new)[:-1, None]
    out = packed[place.clamp(0, max(len(packed) - 1, 0))]
    return out.masked_fill((count == 0)[..., None], 0)


def targets(labels: Tensor, new: Tensor | None, ignore: int) -> Tensor:
    """Return the labels that count: those of tokens that follow another token."""
    if new is None:
        return labels
    return labels.masked_fill(~new | (new.cumsum(1) <= 1), ignore)
