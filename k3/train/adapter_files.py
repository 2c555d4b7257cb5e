"""Adapters in peft's layout: adapter_config.json and adapter_model.safetensors."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from k3.data import shards
from k3.errors import CheckpointError, RequestError
from k3.model import Model
from k3.train import lora
from k3.train.lora import Options

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
PLAIN = {"peft_type": "LORA", "bias": "none", "fan_in_fan_out": False}
"""What a config must say, if it says it, for us to compute what it means."""
UNUSED = ("alpha_pattern", "rank_pattern", "use_dora", "use_rslora", "modules_to_save")
"""What it must not ask for."""


def write(model: Model, directory: str | Path, base: str = "") -> None:
    """Write the adapters of a model; each file is complete or absent.

    `base` says which checkpoint they belong to.
    Raises: CheckpointError for a model without adapters.
    """
    layers, folder = lora.adapted(model), Path(directory)
    if not layers:
        raise CheckpointError("an adapter has layers: this model has none; attach it")
    folder.mkdir(parents=True, exist_ok=True)
    first = next(iter(layers.values()))
    config = PLAIN | {
        "base_model_name_or_path": base,
        "inference_mode": True,
        "lora_alpha": first.scale * len(first.lora_A),
        "lora_dropout": 0.0,
        "r": len(first.lora_A),
        "target_modules": sorted(layers),
        "task_type": "CAUSAL_LM",
        "use_rslora": False,
    }
    tensors = {
        _name(path, leaf): getattr(layer, leaf).detach().contiguous()
        for path, layer in layers.items()
        for leaf in ("lora_A", "lora_B")
    }
    shards.replace(folder / WEIGHTS, save(tensors, {"format": "pt"}))
    text = json.dumps(config, indent=2) + "\n"
    shards.replace(folder / CONFIG, text.encode())


def load(model: Model, directory: str | Path) -> list[str]:
    """Attach the adapters of a directory to a model; return their paths.

    Raises: CheckpointError for files that are absent, damaged or of another model.
    """
    folder = Path(directory)
    config = _config(folder / CONFIG)
    tensors = _tensors(folder / WEIGHTS)
    suffix = ".lora_A.weight"
    paths = [k[len(PREFIX) : -len(suffix)] for k in tensors if k.endswith(suffix)]
    try:
        options = Options(
            targets=tuple(paths), rank=config["r"], alpha=float(config["lora_alpha"])
        )
        wrong = _misfits(model, paths, tensors, options.rank)
    except (KeyError, TypeError, ValueError, RequestError) as fault:
        raise _wrong(folder, f"{fault}") from None
    if wrong or not paths:
        raise _wrong(folder, wrong or "it holds no adapter")
    lora.attach(model, options)
    with torch.no_grad():
        for path, layer in lora.adapted(model).items():
            layer.lora_A.copy_(tensors[_name(path, "lora_A")])
            layer.lora_B.copy_(tensors[_name(path, "lora_B")])
    return paths


def _name(path: str, leaf: str) -> str:
    return f"{PREFIX}{path}.{leaf}.weight"


def _misfits(
    model: Model, paths: list[str], tensors: dict[str, Tensor], rank: int
) -> str:
    """What does not fit, before anything is changed; nothing if all does."""
    modules, left = dict(model.named_modules()), set(tensors)
    for path in paths:
        base = modules.get(path)
        if not isinstance(base, nn.Linear):
            return f"{path} is no linear layer here"
        out, width = base.weight.shape
        for leaf, shape in (("lora_A", (rank, width)), ("lora_B", (out, rank))):
            name = _name(path, leaf)
            if name not in tensors or tensors[name].shape != shape:
                return f"{name} is not {list(shape)}"
            left.remove(name)
    return f"{min(left)} belongs to no layer" if left else ""


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as fault:
        raise _wrong(path, f"{fault}") from None
    if not isinstance(config, dict):
        raise _wrong(path, "it is no JSON object")
    other = [k for k, value in PLAIN.items() if config.get(k, value) != value]
    asked = [key for key in UNUSED if config.get(key)]
    if other or asked:
        key = (other + asked)[0]
        raise _wrong(path, f"{key}={config[key]!r} is not supported")
    return config


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as fault:
        raise _wrong(path, f"{fault}") from None


def _wrong(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"an adapter is one of this model, in peft's layout: {path} is not ({why}); "
        "give another"
    )
