"""config.json under transformers' interface: kept as it came, written as it came."""

import copy
import json
from typing import Any, ClassVar

import torch
from transformers import PreTrainedConfig

from k3.config import K3Config, TextConfig
from k3.config.section import names
from k3.errors import RequestError

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
_TEXT = frozenset(names(TextConfig)) - {"dtype", "quantization_config", *_IDS}
# Bookkeeping of transformers' loader, which mean nothing here.
_LOADER = frozenset({"_from_auto", "_from_pipeline", "name_or_path", "_commit_hash"})


class KimiK3Config(PreTrainedConfig):
    """A K3Config for transformers; fields of the text part read as attributes.

    `released` is the configuration itself. It cannot be changed here: build another
    K3Config and `KimiK3Config(released=...)`.
    """

    model_type: ClassVar[str] = "kimi_k3"

    def __init__(
        self, *, released: K3Config | None = None, dtype: Any = None, **values: Any
    ) -> None:
        """Take a K3Config, or the fields of a config.json; raise ConfigError."""
        if released is None:
            file = values if dtype is None else {**values, "dtype": _word(dtype)}
            released = K3Config.from_dict(file)
        super().__init__(
            architectures=["KimiK3ForConditionalGeneration"],
            dtype=dtype or released.dtype or released.text.dtype or "bfloat16",
        )
        self.released = released
        for name in _IDS:
            setattr(self, name, getattr(released, name))

    def __getattr__(self, name: str) -> Any:
        """Return a field of the text part, as configurations of one part have it."""
        if name in _TEXT and "released" in self.__dict__:
            return getattr(self.__dict__["released"].text, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def get_text_config(self, decoder: Any = None, encoder: Any = None) -> Any:
        """Return this configuration, which answers for its text part."""
        return self

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **options: Any) -> Any:
        """Read the values of a config.json; of `options` only dtype is used."""
        wants_rest = options.pop("return_unused_kwargs", False)
        config = cls(released=K3Config.from_dict(copy.deepcopy(config_dict)))
        config.name_or_path = options.get("name_or_path", "")
        asked = [options.pop(name, None) for name in ("dtype", "torch_dtype")]
        dtype = next((x for x in asked if x is not None and x != "auto"), None)
        if dtype is not None:
            config.dtype = to_dtype(dtype)
        rest = {k: v for k, v in options.items() if k not in _LOADER}
        changed = sorted(set(rest) & (_TEXT | set(names(K3Config))))
        if changed:
            raise RequestError(
                f"fields of config.json are not changed at load: got {changed}; "
                "edit the file, or build a K3Config"
            )
        return (config, rest) if wants_rest else config

    def to_dict(self) -> dict[str, Any]:
        """Return config.json's values: what was absent stays absent."""
        return copy.deepcopy(self.released.to_dict())

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the same: a default that the file states is kept."""
        return self.to_dict()

    def to_json_string(self, use_diff: bool = True) -> str:
        """Return config.json's text, with the keys in their order."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def to_dtype(dtype: Any) -> torch.dtype:
    """Return a torch dtype given as one or by its name."""
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype):
        raise RequestError(
            f"dtype is 'auto', a torch dtype or its name: got {dtype!r}; "
            "give torch.bfloat16 or torch.float32"
        )
    return found


def _word(dtype: Any) -> str:
    return str(to_dtype(dtype)).removeprefix("torch.")
