"""A model against a file of the released model's numbers, tensor by tensor.

Error: largest absolute difference over the largest absolute value expected.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from k3.config import K3Config
from k3.data import media
from k3.errors import CheckpointError, RequestError
from k3.model import Model
from k3.model.generate import GenerateOptions, generate
from k3.verify import report, seeded
from k3.verify.golden import Golden

# What a right program stays below, by the dtype that it computes in.
TOLERANCE = {torch.float64: 2e-5, torch.float32: 5e-5, torch.bfloat16: 5e-2}
# The golden picture prompt carries the released program's own fp32 noise.
PICTURE_TOLERANCE = 1e-4


def compare(
    model: Model, golden: str | Path | Golden, *, tolerance: float | None = None
) -> report.Report:
    """Run everything that the file has numbers for; the first difference comes first.

    `tolerance` replaces the defaults of the model's dtype for every tensor.

    Raises: CheckpointError for a file that holds nothing to compare, RequestError
    for one of another vocabulary, width or depth, or a tolerance that is no bound.
    """
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise RequestError(
            f"a tolerance must be at least 0 and finite: got {tolerance}; leave it out "
            "for the default of the dtype"
        )
    file = golden if isinstance(golden, Golden) else Golden.load(golden)
    names = file.expected()
    if not names:
        raise CheckpointError(
            f"{file.path} must hold at least one tensor to reproduce: got "
            f"{', '.join(sorted(file.arrays))}; release files have logits_full"
        )
    _check_vocabulary(model, file)
    _check_widths(model, file, names)
    values = dict(_reproduce(model, file, names))
    missing = [name for name in names if name not in values]
    entries = [
        report.measure(
            name,
            values[name],
            file[name],
            _tolerance(model, name) if tolerance is None else tolerance,
        )
        for name in names
        if name in values
    ]
    return report.Report(entries=entries, unknown=[*missing, *file.unknown()])


def seeded_model(
    golden: str | Path | Golden, *, dtype: torch.dtype, device: str = "cpu"
) -> Model:
    """The model whose config, salt and parameter shapes the file names."""
    file = golden if isinstance(golden, Golden) else Golden.load(golden)
    config = K3Config.from_dict(file.json("config"))
    made = seeded.weights(
        str(file["salt"]), file.json("param_shapes"), config.pad_token_id or 0
    )
    model = Model(config, dtype=dtype, device=device)
    prefix = "language_model." if config.bare else ""
    model.load_state_dict({prefix + k: torch.from_numpy(v) for k, v in made.items()})
    return model


def _check_vocabulary(model: Model, file: Golden) -> None:
    size = model.config.text.vocab_size
    for key in ("ids", "greedy_prompt", "mm_ids"):
        if key in file and file[key].size and int(file[key].max()) >= size:
            raise RequestError(
                f"golden numbers must be of the same model: {key} holds token "
                f"{int(file[key].max())}, the model has {size}; give its own file"
            )


def _check_widths(model: Model, file: Golden, names: list[str]) -> None:
    """Refuse once what would differ in every tensor: other widths, other layers."""
    text = model.config.text
    for name in names:
        layer = re.match(r"(?:layers\.|state_)(\d+)", name)
        if layer and int(layer[1]) >= text.num_hidden_layers:
            wrong = f"they hold {name}, the model has {text.num_hidden_layers} layers"
        elif (width := _width(model, name)) and file[name].shape[-1:] != (width,):
            shape = list(file[name].shape)
            wrong = f"{name} has shape {shape}, the model's is {width} wide"
        else:
            continue
        raise RequestError(
            f"golden numbers must be of the same model: {wrong}; give its own file"
        )


def _width(model: Model, name: str) -> int | None:
    """The last axis of a tensor that every model of these sizes has."""
    text = model.config.text
    if "logits" in name:
        return text.vocab_size
    hidden = name.startswith("proj_") or name.endswith((".self_attn", ".out_prefix"))
    return text.hidden_size if hidden else None


def _tolerance(model: Model, name: str) -> float:
    usual = TOLERANCE.get(model.dtype, TOLERANCE[torch.bfloat16])
    return max(usual, PICTURE_TOLERANCE) if name.startswith("mm_") else usual


@torch.no_grad()
def _reproduce(
    model: Model, file: Golden, names: list[str]
) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """(key, array) for every key that the model can compute."""
    if "pixel_values" in file:
        yield from _pictures(model, file, names)
    if "prompt_len" in file:
        yield from _streamed(model, file)
    if "logits_full" in names:
        yield "logits_full", _array(model(_ids(model, file["ids"]))[0])
    if "greedy_tokens" in names:
        count = len(file["greedy_tokens"])
        options = GenerateOptions(temperature=0.0, max_tokens=count, ignore_eos=True)
        out = generate(model, [file["greedy_prompt"].tolist()], options)
        yield "greedy_tokens", np.array(out[0].ids)


def _streamed(model: Model, file: Golden) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """The prompt at once with its taps, then one token at a time; the last states."""
    ids, length = _ids(model, file["ids"]), int(file["prompt_len"])
    taps: dict[str, Tensor] = {}
    logits, state = model(ids[:, :length], state=model.init_state(1), taps=taps)
    for name, value in taps.items():
        yield name, _array(value[0])
    yield "logits_prefill", _array(logits[0])
    rows = []
    for position in range(length, ids.shape[1]):
        logits, state = model.step(ids[:, position : position + 1], state)
        rows.append(logits[0])
    if rows:
        yield "logits_decode", _array(torch.cat(rows))
    for name, value in state.pack().items():
        if name.endswith(".state"):
            yield f"state_{name.split('.')[1]}", _array(value[0])


def _pictures(
    model: Model, file: Golden, names: list[str]
) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Projector rows of each picture, then a prompt with the first ones in it."""
    grids = torch.from_numpy(file["grids"]).to(model.device)
    pixels = torch.from_numpy(file["pixel_values"]).to(model.device)
    features = model.encode_images(pixels, grids)
    merge = model.config.vision.merge_kernel_size if model.config.vision else [1, 1]
    counts = [int(h * w) // (merge[0] * merge[1]) for _, h, w in file["grids"]]
    for index, rows in enumerate(torch.split(features, counts)):
        yield f"proj_{index}", _array(rows)
    if "mm_logits" in names:
        shown = file["mm_grids"]
        ids = media.expand_placeholders(
            file["mm_ids"].tolist(), shown, _placeholder(model)
        )
        rows = features[: sum(counts[: len(shown)])]
        logits = model(_ids(model, np.array(ids)), features=rows)
        yield "mm_logits", _array(logits[0])


def _placeholder(model: Model) -> int:
    found = model.config.media_placeholder_token_id
    if found is None:
        raise RequestError(
            "a prompt with pictures needs media_placeholder_token_id in config.json: "
            "got none; name the token"
        )
    return found


def _ids(model: Model, ids: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64))[None].to(model.device)


def _array(value: Tensor) -> NDArray[np.generic]:
    wide = value if value.dtype == torch.float64 else value.float()
    return np.asarray(wide.detach().cpu().numpy())
