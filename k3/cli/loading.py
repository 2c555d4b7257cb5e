"""A verb's model and tokenizer: `MODEL`, `--dtype`, `--device` and `--experts` read."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3.cli import settings
from k3.errors import RequestError

if TYPE_CHECKING:
    import torch

    from k3.data.tokenizer import Tokenizer
    from k3.model import Model

DTYPES = ("auto", "float64", "float32", "bfloat16")
EXPERTS = ("packed", "dequantized", "mmap")


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


def load(model: str, *, dtype: str, device: str, experts: str) -> Loaded:
    """Locate and load a checkpoint as the options say."""
    from k3.checkpoint.load import load as load_model
    from k3.checkpoint.locate import locate

    settings.one_of("--dtype", dtype, DTYPES)
    settings.one_of("--experts", experts, EXPERTS)
    path = locate(model)
    where = pick_device(device)
    chosen = pick_dtype(dtype, where)
    loaded = load_model(path, dtype=chosen, device=where, experts=experts)
    return Loaded(path, loaded, tokenizer(path))


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
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise RequestError(
            f"--device must be auto, cpu, cuda or cuda:N: got {device!r}; choose one"
        )
    if kind == "cuda" and not torch.cuda.is_available():
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
