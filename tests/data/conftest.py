"""A small vocabulary, trained once per session on the standard library."""

import string
import textwrap
import unittest.mock
from pathlib import Path

import pytest

from k3.data import bpe
from k3.data.tokenizer import Tokenizer

EXTRA = "汉字汉字 한국어 한국어 naïve café 😀😀 Ωμέγα don't DON'T 2026 2026\r\n"


@pytest.fixture(scope="session")
def texts():
    modules = (string, textwrap, unittest.mock)
    sources = [Path(module.__file__).read_text("utf-8") for module in modules]
    return [*sources, EXTRA * 100]


@pytest.fixture(scope="session")
def ranks(texts):
    return bpe.train(texts, 512)


@pytest.fixture(scope="session")
def tokenizer(ranks):
    return Tokenizer(ranks)


@pytest.fixture(scope="session")
def byte_tokenizer():
    """No merges: one token per byte."""
    return Tokenizer({bytes([byte]): byte for byte in range(256)})
