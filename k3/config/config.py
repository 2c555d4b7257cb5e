"""K3Config: the released config.json, read field for field and written back."""

import json
import os
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from k3.config import rules, section
from k3.config.quantization import QuantizationConfig
from k3.config.section import Section, View, Wrong
from k3.config.text import TextConfig
from k3.config.vision import VisionConfig
from k3.errors import ConfigError

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class K3Config(Section):
    """A whole model: text, optionally vision, and the token ids they share."""

    BOOKKEEPING: ClassVar[frozenset[str]] = frozenset(
        {"architectures", "auto_map", "torch_dtype", "transformers_version"}
    )

    text_config: TextConfig
    vision_config: VisionConfig | None = None
    model_type: str = "kimi_k3"
    dtype: str | None = None
    tie_word_embeddings: bool = False
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    pad_token_id: int | None = None
    ignore_index: int = -100
    media_placeholder_token_id: int | None = None
    image_placeholder: str | None = None
    quantization_config: QuantizationConfig | None = None

    def __post_init__(self) -> None:
        _refuse(rules.check(self))

    @property
    def text(self) -> TextConfig:
        """The language model."""
        return self.text_config

    @property
    def vision(self) -> VisionConfig | None:
        """The image tower, if the checkpoint has one."""
        return self.vision_config

    @property
    def bare(self) -> bool:
        """Whether the file is a text config alone, with no prefix on its tensors."""
        return self.model_type != "kimi_k3"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "K3Config":
        """Read a config; raise ConfigError naming every wrong field at once."""
        bare = "text_config" not in data and data.get("model_type") != "kimi_k3"
        wrong: list[Wrong] = []
        if bare:
            view = _around(section.parse(TextConfig, data, "", wrong))
        else:
            view = _inherit(section.parse(cls, data, "", wrong))
            _expect_k3(view, data, wrong)
        if wrong:
            _refuse(wrong + rules.check(cast(K3Config, view)))
        config = cast(K3Config, view.build())
        _warn(section.unknown(config.text if bare else config))
        return config

    def to_dict(self) -> dict[str, Any]:
        """Return config.json's values: what was absent stays absent."""
        if self.bare:
            return self.text.to_dict()
        values = Section.to_dict(self)
        for name in _IDS:
            if name not in self.keys and getattr(self, name) == getattr(
                self.text, name
            ):
                values.pop(name, None)
        return values

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "K3Config":
        """Read config.json, given the file or its directory."""
        file = Path(path)
        file = file / "config.json" if file.is_dir() else file
        try:
            text = file.read_text(encoding="utf-8")
            data = json.loads(text, object_pairs_hook=_unique)
        except FileNotFoundError:
            raise ConfigError(
                f"no configuration at {file}: give a directory that holds config.json"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{file} must be a file that can be read: {error.strerror}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file} is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise ConfigError(f"{file} must hold a JSON object, got {data!r:.40}")
        return cls.from_dict(data)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write config.json into a directory, under a temporary name first."""
        file = Path(directory) / "config.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        temporary = file.with_name(f".config.json.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
        return file


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; of a field given twice nobody knows which one counts."""
    twice = [name for name, count in Counter(n for n, _ in pairs).items() if count > 1]
    if twice:
        raise ConfigError(f"config.json gives a field twice: {', '.join(twice)}")
    return dict(pairs)


def _around(text: View) -> View:
    """Return the whole config that a bare text config stands for."""
    values: dict[str, Any] = {"text_config": text}
    for name in ("model_type", "dtype", *_IDS):
        if name in text._values:
            values[name] = text._values[name]
    for name in section.names(K3Config):
        if name not in values and name not in ("model_type", "dtype", *_IDS):
            values[name] = K3Config.__dataclass_fields__[name].default
    # So that a text part without a readable type still counts as bare.
    values.setdefault("model_type", "kimi_linear")
    return View(K3Config, values)


def _expect_k3(whole: View, data: Mapping[str, Any], wrong: list[Wrong]) -> None:
    came = data.get("model_type", section.NOTHING)
    if came != "kimi_k3" and all(w.name != "model_type" for w in wrong):
        wrong.append(Wrong("model_type", section.show(came), "'kimi_k3'"))
    whole._values["model_type"] = "kimi_k3"


def _inherit(whole: View) -> View:
    """Fill token ids that only the text part gives."""
    text = whole._values.get("text_config")
    for name in _IDS:
        if isinstance(text, View) and name not in whole._values["keys"]:
            whole._values[name] = text._values.get(name)
    return whole


def _refuse(wrong: list[Wrong]) -> None:
    # A field is named once, by the first rule that it breaks.
    wrong = list({w.name: w for w in reversed(wrong)}.values())[::-1]
    if wrong:
        fields = "field" if len(wrong) == 1 else "fields"
        lines = "\n".join(f"  {w.line()}" for w in wrong)
        raise ConfigError(f"config.json has {len(wrong)} wrong {fields}:\n{lines}")


def _warn(unknown: list[str]) -> None:
    if unknown:
        warnings.warn(
            f"config.json has fields k3 does not know: {', '.join(unknown)}; "
            "they are kept and written back, and have no effect",
            UserWarning,
            stacklevel=3,
        )
