"""What transformers' callers may ask for: taken, without effect, or refused by name."""

import re
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.hf.config import to_dtype
from k3.hf.state_cache import StateCache
from k3.kernels.sample import SampleOptions
from k3.model import Model
from k3.model.completion import GenerateOptions

# They choose among copies of files on a hub, or how transformers' own loader works.
NO_EFFECT = frozenset(
    {
        "adapter_kwargs",
        "cache_dir",
        "code_revision",
        "force_download",
        "local_files_only",
        "low_cpu_mem_usage",
        "proxies",
        "revision",
        "subfolder",
        "token",
        "trust_remote_code",
        "use_safetensors",
        "weights_only",
        "_commit_hash",
        "_from_auto",
        "_from_pipeline",
    }
)
NOTHING_MISSING: dict[str, Any] = {
    "missing_keys": set(),
    "unexpected_keys": set(),
    "mismatched_keys": set(),
    "error_msgs": [],
}
_UNITS = {
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


@dataclass(frozen=True, slots=True)
class Loading:
    """The options of from_pretrained that count."""

    dtype: torch.dtype | None
    device: torch.device
    experts: str
    loading_info: bool


def read(args: tuple[Any, ...], given: dict[str, Any]) -> Loading:
    """Return the options of from_pretrained; raise RequestError for unknown ones."""
    rest = {k: v for k, v in given.items() if k not in NO_EFFECT}
    config = rest.pop("config", None)
    asked = [rest.pop(name, None) for name in ("dtype", "torch_dtype")]
    dtype = next((x for x in asked if x is not None), None)
    if dtype is None or dtype == "auto":
        dtype = getattr(config, "dtype", None)
    device = _device(rest.pop("device_map", None))
    experts = rest.pop("experts", "packed")
    info = bool(rest.pop("output_loading_info", False))
    _one_kernel(rest.pop("attn_implementation", None))
    unknown = [*map(repr, args), *sorted(k for k, v in rest.items() if v is not None)]
    if unknown:
        raise RequestError(
            "from_pretrained takes config, dtype, device_map and experts: got "
            f"{', '.join(unknown)}; leave it out"
        )
    return Loading(None if dtype is None else to_dtype(dtype), device, experts, info)


def _device(asked: Any) -> torch.device:
    if isinstance(asked, dict) and set(asked) == {""}:
        asked = asked[""]
    if asked in (None, "auto", "cpu"):
        return torch.device("cpu")
    if isinstance(asked, str | int | torch.device) and asked not in (
        "balanced",
        "sequential",
        "balanced_low_0",
    ):
        return torch.device(asked)
    raise RequestError(
        f"device_map is one device: got {asked!r}; several devices are what a serving "
        "engine is for (docs/scale.md)"
    )


def _one_kernel(name: Any) -> None:
    if name not in (None, "eager"):
        raise RequestError(
            f"K3 has one implementation of attention here: got attn_implementation="
            f"{name!r}; leave it out"
        )


def trunk(dtype: Any) -> torch.dtype:
    """Return the trunk's dtype for the one that a configuration names."""
    return torch.bfloat16 if dtype is None else to_dtype(dtype)


def saving(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return save's options, None where another process writes; refuse unknown ones."""
    rest = dict(given)
    writes = rest.pop("is_main_process", True)
    chosen: dict[str, Any] = {"experts": rest.pop("experts", None)}
    if (size := rest.pop("max_shard_size", None)) is not None:
        chosen["max_shard_bytes"] = shard_bytes(size)
    if rest.pop("safe_serialization", True) is False:
        raise RequestError("checkpoints are safetensors: leave safe_serialization out")
    unknown = sorted(name for name, value in rest.items() if value)
    if unknown:
        raise RequestError(
            "save_pretrained takes max_shard_size and experts: got "
            f"{', '.join(unknown)}; leave it out"
        )
    return chosen if writes else None


def shard_bytes(size: int | str) -> int:
    """Return bytes given as a number or as transformers writes them, "5GB"."""
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"(\d+)\s*([KMG]I?B)", size.strip().upper())
    if found is None:
        raise RequestError(
            f"max_shard_size is bytes or a text as '5GB' or '500MiB': got {size!r}"
        )
    return int(found[1]) * _UNITS[found[2]]


def one_cache(cache: Any, past: Any, wants: bool) -> StateCache | None:
    """Return the cache under either name, or a new one; refuse both and other kinds."""
    if cache is not None and past is not None:
        raise RequestError("past_key_values is the old name of cache: give one of them")
    found = cache if cache is not None else past
    if found is not None and not isinstance(found, StateCache):
        raise RequestError(
            f"cache must be a k3.hf.StateCache: got a {type(found).__name__}; leave it "
            "out to start a new one"
        )
    return StateCache() if found is None and wants else found


def features(
    model: Model, pixels: Tensor | None, grids: Tensor | None
) -> Tensor | None:
    """Return the rows of the images, None without any."""
    if pixels is None and grids is None:
        return None
    if pixels is None or grids is None:
        raise RequestError(
            "pixel_values and grid_thws belong together: got one; pass what the "
            "processor gave"
        )
    return model.encode_images(pixels.to(model.dtype), grids)


def kept(logits: Tensor, keep: int | Tensor) -> Tensor:
    """Return the last `keep` columns (0: all), or those of an index."""
    if isinstance(keep, int):
        return logits[:, -keep:] if keep else logits
    return logits[:, keep]


def sampling(kwargs: dict[str, Any]) -> SampleOptions:
    """Take the sampler's options out of generate's; the rest of them are k3's."""
    names = {f.name for f in fields(SampleOptions)} - {"logprobs"}
    defaults = GenerateOptions()
    chosen = {name: kwargs.pop(name, None) for name in sorted(names)}
    for name, value in chosen.items():
        chosen[name] = getattr(defaults, name) if value is None else value
    if kwargs.pop("do_sample", True) is False:
        chosen["temperature"] = 0.0
    return SampleOptions(**chosen)
