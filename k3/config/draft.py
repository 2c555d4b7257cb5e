"""DraftConfig: an EAGLE-3 draft, what it reads of its target and how large it is."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k3.config.config import K3Config
from k3.config.text import TextConfig
from k3.errors import ConfigError

MODEL_TYPE = "k3_eagle3"
STEPS = 7
"""Positions that training unrolls and a round proposes."""
PAPER_TAPS = (0, 3, -1)
"""First, fourth and final block."""
LAYOUTS = ("mtp", "fused")
FIELDS = ("taps_of", "taps_at", "layout", "experts", "num_speculative_steps")
KEYS = (
    *("model_type", "architectures", "text_config", "taps", "draft_vocab_size"),
    *FIELDS,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftConfig:
    """One decoder layer beside a frozen target, with the target's widths.

    `taps` are three outputs of the target's blocks (`taps_of` "block", counted
    without the embedding; -1 is the last running sum) or layers ("layer", from 0).
    With `taps_at` "input" a number names the block or layer that reads the value, so
    the one before it wrote it. A tap is the running residual sum, never what a depth
    retrieval made of it.
    `draft_vocab_size` is smaller than the target's where a table maps the ids;
    `experts` gives the layer routed experts instead of a dense MLP. `layout` is that of
    the MTP layer, or "fused", the public drafts' for K3 without rotary positions: the
    attention reads [embedding | feature], twice as wide, and adds to the feature.
    """

    text: TextConfig
    taps: tuple[int, int, int] = PAPER_TAPS
    taps_of: str = "block"
    taps_at: str = "output"
    layout: str = "mtp"
    draft_vocab_size: int | None = None
    experts: bool = False
    num_speculative_steps: int = STEPS

    def __post_init__(self) -> None:
        """Refuse taps that are not there, or the same value twice."""
        wrong = [
            f"{name} must be {' or '.join(known)}: got {value!r}"
            for name, value, known in (
                ("taps_of", self.taps_of, ("block", "layer")),
                ("taps_at", self.taps_at, ("output", "input")),
                ("layout", self.layout, LAYOUTS),
            )
            if value not in known
        ]
        if self.layout == "fused" and self.experts:
            wrong.append("a fused draft has a dense MLP: got experts; leave them out")
        size, most = self.draft_vocab_size, self.text.vocab_size
        if size is not None and not 1 <= size <= most:
            wrong.append(f"draft_vocab_size must be 1 to {most}: got {size}")
        if self.num_speculative_steps < 1:
            wrong.append(
                "num_speculative_steps must be at least 1: got "
                f"{self.num_speculative_steps}"
            )
        wrong = wrong or self._wrong_taps()
        if wrong:
            raise ConfigError("; ".join(wrong))

    @property
    def vocab_size(self) -> int:
        """Tokens that the draft can propose."""
        return self.draft_vocab_size or self.text.vocab_size

    @property
    def layers(self) -> tuple[int, ...]:
        """The target layers, from 0, whose running sums are read: low, middle, high."""
        block, last = self.text.attn_res_block_size, self.text.num_hidden_layers - 1
        if self.taps_of == "layer":
            return tuple(self._outputs())
        return tuple(min((n + 1) * block - 1, last) for n in self._outputs())

    def _outputs(self) -> list[int]:
        """Taps as outputs, counted from 0."""
        shift = 1 if self.taps_at == "input" else 0
        return [(n if n >= 0 else n + self._count()) - shift for n in self.taps]

    def _count(self) -> int:
        layers = self.text.num_hidden_layers
        if self.taps_of == "layer":
            return layers
        return -(-layers // self.text.attn_res_block_size)

    def _wrong_taps(self) -> list[str]:
        count, found = self._count(), self._outputs()
        what = f"the {count} {self.taps_of}s of the target"
        if self.taps_of == "block" and count < 4:
            return [
                "a draft reads the outputs of at least four blocks: got a target of "
                f"{count}; tap layers with taps_of 'layer'"
            ]
        # Of four blocks the paper's fourth and last are one.
        paper = self.taps == PAPER_TAPS and self.taps_of == "block" and count == 4
        if len(found) != 3 or (len(set(found)) != 3 and not paper):
            return [f"taps must be three different ones of {what}: got {self.taps}"]
        if not all(0 <= n < count for n in found):
            return [f"taps must be among {what}: got {self.taps} at {self.taps_at}"]
        return []

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "DraftConfig":
        """Read a draft's config.json; what would be ignored is refused.

        Raises: ConfigError for keys that no draft here obeys, such as rotary ones.
        """
        if data.get("model_type") != MODEL_TYPE:
            raise ConfigError(
                f"a draft's config has model_type {MODEL_TYPE!r}: got "
                f"{data.get('model_type')!r}; give the folder of a trained draft"
            )
        unknown = sorted(set(data) - set(KEYS))
        if unknown:
            raise ConfigError(
                f"a draft obeys all that its config says: got {', '.join(unknown)}, "
                f"which this one cannot; known are {', '.join(KEYS)}"
            )
        names = (*FIELDS, "draft_vocab_size")
        given = {name: data[name] for name in names if name in data}
        text = K3Config.from_dict(data.get("text_config", {})).text
        taps = tuple(data.get("taps", PAPER_TAPS))
        return cls(text=text, taps=taps, **given)

    def to_dict(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        values: dict[str, Any] = {
            "model_type": MODEL_TYPE,
            "architectures": ["K3Eagle3Draft"],
            "taps": list(self.taps),
            **{name: getattr(self, name) for name in FIELDS},
            "text_config": self.text.to_dict(),
        }
        if self.draft_vocab_size is not None:
            values["draft_vocab_size"] = self.draft_vocab_size
        return values

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "DraftConfig":
        """Read config.json of a folder."""
        path = Path(directory) / "config.json"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"a draft's folder holds a config.json: got {path} ({error})"
            ) from error
        if not isinstance(data, dict):
            raise ConfigError(f"{path} must hold a JSON object: got {data!r:.40}")
        return cls.from_dict(data)
