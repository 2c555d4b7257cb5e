"""What a checkpoint or a config is, from headers alone: verdicts, sizes, memory."""

import os
import warnings
from pathlib import Path

from k3.checkpoint import header, names, survey
from k3.checkpoint.report import Report, Tensors
from k3.config import K3Config, sizes
from k3.errors import CheckpointError, ConfigError, RequestError


def inspect(
    model: str | os.PathLike[str] | K3Config,
    *,
    context_tokens: int = 4096,
    name: str | None = None,
) -> Report:
    """Return the report on a checkpoint directory, or on a config without weights.

    A wrong config or checkpoint does not raise: the report lists what is wrong.
    """
    if context_tokens < 0:
        raise RequestError(f"context_tokens must be at least 0: got {context_tokens}")
    if isinstance(model, K3Config):
        return _report(name or "config", model, _planned(model), context_tokens)
    folder = Path(model)
    folder = folder.parent if folder.name == "config.json" else folder
    try:
        config, notes = _read(folder)
    except ConfigError as error:
        return Report(model=name or str(folder), config_problems=_lines(error))
    tensors = _found(folder, config)
    notes += _storage_note(config, tensors)
    return _report(name or str(folder), config, tensors, context_tokens, notes)


def _report(
    name: str,
    config: K3Config,
    tensors: Tensors,
    context_tokens: int,
    notes: tuple[str, ...] = (),
) -> Report:
    text = config.text
    return Report(
        model=name,
        notes=notes,
        summary=_summary(config),
        tensors=tensors,
        parameters=sizes.parameters(config),
        memory=sizes.memory(config, context_tokens),
        row_scalars=(text.mla_row_scalars, text.mla_expanded_scalars),
    )


def _summary(config: K3Config) -> str:
    text = config.text
    kda, mla = len(text.kda_layers), len(text.mla_layers)
    parts = [
        f"{text.num_hidden_layers} layers ({kda} KDA, {mla} MLA)",
        f"{text.num_experts} experts, top {text.num_experts_per_token}",
        f"{text.attn_res_sources} depth sources",
        "text and vision" if config.vision else "text only",
    ]
    return ", ".join(parts)


def _read(folder: Path) -> tuple[K3Config, tuple[str, ...]]:
    """Return the config, and its warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = K3Config.load(folder)
    return config, tuple(str(warning.message) for warning in caught)


def _lines(error: Exception) -> tuple[str, ...]:
    """Return what an error lists, or the error itself where it lists nothing."""
    first, *rest = str(error).splitlines()
    return tuple(line.strip() for line in rest) or (first,)


def _planned(config: K3Config) -> Tensors:
    return Tensors(
        expected_count=len(names.expected(config)),
        expected_bytes=sizes.stored_bytes(config),
    )


def _found(folder: Path, config: K3Config) -> Tensors:
    """Return what the headers of a directory hold, and everything wrong with them."""
    plan = _planned(config)
    counts = plan.expected_count, plan.expected_bytes
    if not _has_weights(folder):
        return plan
    try:
        found, problems = survey.examine(folder, config)
    except CheckpointError as error:
        return _broken(counts, _lines(error))
    return Tensors(
        expected_count=counts[0],
        expected_bytes=counts[1],
        present=True,
        count=len(found.tensors),
        files=len({stored.file for stored in found.tensors.values()}),
        nbytes=found.total_bytes,
        experts=found.experts,
        problems=tuple(problems),
    )


def _broken(counts: tuple[int, int], problems: tuple[str, ...]) -> Tensors:
    count, nbytes = counts
    return Tensors(
        expected_count=count, expected_bytes=nbytes, present=True, problems=problems
    )


def _has_weights(folder: Path) -> bool:
    index = (folder / header.INDEX).exists()
    return index or any(folder.glob("*.safetensors"))


def _storage_note(config: K3Config, tensors: Tensors) -> tuple[str, ...]:
    """Say it when the files store experts otherwise than the config announces."""
    announced = "packed" if config.text.quantization_config else "dense"
    if not tensors.experts or tensors.experts == announced:
        return ()
    return (
        f"the experts are stored {tensors.experts} and quantization_config says "
        f"{announced}: k3 follows the files, other engines may not",
    )
