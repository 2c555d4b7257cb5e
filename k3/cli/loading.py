"""A verb's model and tokenizer: `MODEL`, `--dtype`, `--device` and `--experts` read."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3.cli import settings
from k3.errors import CheckpointError, RequestError

if TYPE_CHECKING:
    import torch

    from k3.data.tokenizer import Tokenizer
    from k3.model import Model

DTYPES = ("auto", "float64", "float32", "bfloat16")
# Dense is what convert and the checkpoint call dequantized experts.
EXPERTS = {
    "packed": "packed",
    "dequantized": "dequantized",
    "dense": "dequantized",
    "mmap": "mmap",
}
DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")
WEIGHTS = ("auto", "stored", "widened")
# Configurations that need no files: nobody's disk holds them by chance.
CONFIGS = ("released", "paper")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to run; a checkpoint need not come with a tokenizer."""

    path: Path
    model: "Model"
    tokenizer: "Tokenizer | None"

    def encode(self, text: str) -> list[int]:
        """Token ids of ordinary text."""
        return self.needed_tokenizer().encode(text)

    def needed_tokenizer(self) -> "Tokenizer":
        """The tokenizer, or a sentence saying what to do without one."""
        if self.tokenizer is None:
            raise RequestError(
                f"text needs a tokenizer: {self.path} has no tiktoken.model; give "
                f"token ids with --ids 1,2,3"
            )
        return self.tokenizer


def check(dtype: str, device: str, experts: str) -> None:
    """Refuse words that mean nothing, before anything slow is imported."""
    settings.one_of("--dtype", dtype, DTYPES)
    settings.one_of("--experts", experts, EXPERTS)
    if not DEVICE.fullmatch(device):
        raise RequestError(
            f"--device must be auto, cpu, cuda or cuda:N: got {device!r}; choose one"
        )


def find(model: str, *, perhaps_text: bool = False) -> Path:
    """The folder of MODEL; a word that names none may be a text without its -p."""
    from k3.checkpoint.locate import locate

    if model in CONFIGS and not Path(model).exists():
        raise CheckpointError(
            f"{' and '.join(CONFIGS)} are configs without weights, which only "
            f"k3 inspect and k3 plan read: got {model}; give a folder that holds "
            "weights, or tiny"
        )
    try:
        return locate(model)
    except CheckpointError as error:
        if not perhaps_text or Path(model).exists():
            raise
        raise CheckpointError(
            f"{error}; for a text write -p {shlex.quote(model)}"
        ) from error


def load(
    path: Path, *, dtype: str, device: str, experts: str, weights: str = "widened"
) -> Loaded:
    """Load a checkpoint as the options say."""
    from k3.checkpoint.load import load as load_model

    where = pick_device(device)
    chosen = pick_dtype(dtype, where)
    loaded = load_model(
        path,
        dtype=chosen,
        device=where,
        experts=EXPERTS[experts],
        weights=pick_weights(weights, chosen, where),
    )
    return Loaded(path, loaded, tokenizer(path))


def load_frozen(path: Path, *, dtype: str, device: str, experts: str) -> Loaded:
    """Load a checkpoint that only answers: its weights need not be changeable."""
    return load(path, dtype=dtype, device=device, experts=experts, weights="auto")


def tokenizer(path: Path) -> "Tokenizer | None":
    """The checkpoint's tokenizer, or None where it has no ranks file."""
    if not (path / "tiktoken.model").exists():
        return None
    from k3.data.tokenizer import Tokenizer

    return Tokenizer.load(path)


def pick_device(device: str) -> str:
    """The device to use: the first GPU or the CPU for `auto`."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise RequestError(
            "--device cuda needs a GPU that torch can use: none is visible here; "
            "use --device cpu"
        )
    return device


def pick_dtype(dtype: str, device: str) -> "torch.dtype":
    """float32 on a CPU, bfloat16 on a GPU for `auto`."""
    import torch

    automatic = "float32" if device == "cpu" else "bfloat16"
    chosen: Any = getattr(torch, automatic if dtype == "auto" else dtype)
    assert isinstance(chosen, torch.dtype)
    return chosen


def pick_weights(weights: str, dtype: "torch.dtype", device: str) -> str:
    """How matrices are held: `auto` keeps them as stored where that is the faster way.

    That is float32 on a CPU with native kernels, which widen what they read; PyTorch
    would write every matrix out before it is multiplied.
    """
    import torch

    from k3.kernels import choose

    if weights != "auto":
        return weights
    reads = device == "cpu" and dtype == torch.float32 and choose.ready()
    return "stored" if reads else "widened"
