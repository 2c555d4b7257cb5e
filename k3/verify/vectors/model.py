"""Vectors of a checkpoint: tokens in, every module's output, states and logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from k3.model import Model
from k3.model.generate import GenerateOptions, generate
from k3.verify.vectors import files
from k3.verify.vectors.operator import NAMES

NOTE = (
    "golden.npz has the keys that k3 compare MODEL GOLDEN.npz reproduces. modules.npz "
    "has the output of every module in the pass over the whole sequence, by its name "
    "in the checkpoint. bfloat16 is stored as its 16 bits in uint16"
)


def export_model(
    model: Model, folder: str | Path, *, tokens: int = 12, seed: int = 0
) -> dict[str, Any]:
    """Write golden numbers and all module outputs of a model into a new folder.

    `tokens` random ids are run at once; all but the last quarter are also prefilled,
    and the rest decoded one by one. Returns the manifest.
    """
    folder = Path(folder)
    files.new_folder(folder)
    generator = torch.Generator().manual_seed(seed)
    words = model.config.text.vocab_size
    ids = torch.randint(0, words, (tokens,), generator=generator)
    with torch.no_grad():
        files.save(folder, "golden.npz", files.arrays(_golden(model, ids)))
        with _outputs(model) as modules:
            model(ids[None].to(model.device))
    files.save(folder, "modules.npz", files.arrays(modules))
    about = {
        "model": {"layers": model.config.text.num_hidden_layers, "vocabulary": words},
        "dtype": NAMES[model.dtype],
        "seed": seed,
        "tokens": tokens,
        "note": NOTE,
    }
    return files.manifest(folder, about)


def _golden(model: Model, ids: Tensor) -> dict[str, Any]:
    """The arrays that k3.verify.compare knows, in float64 or fp32."""
    length = max(1, len(ids) - len(ids) // 4)
    row = ids[None].to(model.device)
    taps: dict[str, Tensor] = {}
    logits, state = model(row[:, :length], state=model.init_state(1), taps=taps)
    found: dict[str, Any] = {"ids": ids, "prompt_len": length}
    found |= {n: x[0] for n, x in taps.items() if n.startswith("layers.")}
    found["logits_prefill"], decoded = logits[0], []
    for at in range(length, len(ids)):
        logits, state = model.step(row[:, at : at + 1], state)
        decoded.append(logits[0])
    if decoded:
        found["logits_decode"] = torch.cat(decoded)
    for name, value in state.pack().items():
        if name.endswith(".state"):
            found[f"state_{name.split('.')[1]}"] = value[0]
    found["logits_full"] = model(row)[0]
    prompt = ids[:length].tolist()
    options = GenerateOptions(temperature=0.0, max_tokens=8, ignore_eos=True)
    found["greedy_prompt"] = torch.tensor(prompt)
    found["greedy_tokens"] = torch.tensor(generate(model, [prompt], options)[0].ids)
    return {n: _wide(x) for n, x in found.items()}


def _wide(x: Any) -> Any:
    narrow = isinstance(x, Tensor) and x.dtype in (torch.bfloat16, torch.float16)
    return x.float() if narrow else x


@contextmanager
def _outputs(model: Model) -> Iterator[dict[str, Tensor]]:
    """The tensor that each named module returns."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, args: Any, out: Any) -> None:
            if isinstance(out, Tensor):
                found[name] = out.detach().clone()

        return hook

    named = [(n, m) for n, m in model.named_modules() if n]
    handles = [m.register_forward_hook(keep(n)) for n, m in named]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
