"""Which layers are MLA: every fourth counted from 1, and the last (section 2.1)."""

from typing import Any

from k3.config.section import show

_EVERY = 4


def mla_layers(num_layers: int) -> list[int]:
    """Return the derived MLA layers, counted from 1."""
    last = [] if num_layers % _EVERY == 0 else [num_layers]
    return [*range(_EVERY, num_layers + 1, _EVERY), *last]


def kda_layers(num_layers: int) -> list[int]:
    """Return the derived KDA layers, counted from 1."""
    mla = set(mla_layers(num_layers))
    return [p for p in range(1, num_layers + 1) if p not in mla]


def mla_is_derived(text: Any) -> bool:
    """Whether full_attn_layers is the derived schedule."""
    came, derived = _both(text, "full_attn_layers")
    return came == derived


def kda_is_derived(text: Any) -> bool:
    """Whether kda_layers is the rest of the derived schedule."""
    came, derived = _both(text, "kda_layers")
    return came == derived


def expected_mla(text: Any) -> str:
    """What full_attn_layers should be, and what it lacks or has too much."""
    both = _both(text, "full_attn_layers")
    return f"every fourth layer and the last, counted from 1{_difference(*both)}"


def expected_kda(text: Any) -> str:
    """What kda_layers should be, and what it lacks or has too much."""
    both = _both(text, "kda_layers")
    return f"every layer that is not MLA, counted from 1{_difference(*both)}"


def _both(text: Any, name: str) -> tuple[list[int], list[int]]:
    derive = mla_layers if name == "full_attn_layers" else kda_layers
    came = list(getattr(text.linear_attn_config, name))
    # An absurd layer count must not cost more than the lists that came with it.
    count = min(text.num_hidden_layers, max(10_000, 2 * _EVERY * len(came)))
    return came, derive(max(0, count))


def _difference(came: list[int], derived: list[int]) -> str:
    missing = sorted(set(derived) - set(came))
    surplus = sorted(set(came) - set(derived))
    parts = [f": {show(derived)}"]
    parts += [f"missing {show(missing)}"] if missing else []
    parts += [f"surplus {show(surplus)}"] if surplus else []
    return "; ".join(parts)
