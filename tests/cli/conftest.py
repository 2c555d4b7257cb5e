"""A random checkpoint with a byte tokenizer, and a way to run the program in place."""

import json
import signal
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from k3.checkpoint.save import save
from k3.cli import main
from k3.config import K3Config
from k3.data.tokenizer import Tokenizer
from k3.model import Model

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_release"
BYTES = {bytes([byte]): byte for byte in range(256)}


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """tiny_release's shape with 512 tokens: 256 bytes and the special places."""
    data = json.loads((GOLDEN / "config.json").read_text())
    ids = {"bos_token_id": 256, "eos_token_id": 258, "pad_token_id": 511}
    data |= ids | {"media_placeholder_token_id": 277}
    data["text_config"] |= ids | {"vocab_size": 512}
    folder = tmp_path_factory.mktemp("byte_model")
    model = Model(K3Config.from_dict(data)).init_weights(seed=1)
    save(model, folder, experts="packed")
    Tokenizer(BYTES).save(folder)
    return str(folder)


@pytest.fixture(scope="session")
def golden():
    """The released layout without a tokenizer."""
    return str(GOLDEN)


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def k3(capfd):
    """Run `k3 ...` in this process: exit code, standard output, standard error."""

    def run(*arguments):
        with warnings.catch_warnings():
            code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)
