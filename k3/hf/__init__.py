"""K3 under the transformers interface: importing this registers `kimi_k3`.

    import k3.hf
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

No remote code runs, whatever `auto_map` says. Raises: RequestError where transformers
is not installed.
"""

# First, for it raises the error that names the missing extra.
from k3.hf import extra as extra  # isort: skip
from k3.hf.config import KimiK3Config as KimiK3Config
from k3.hf.model import (
    KimiK3ForConditionalGeneration as KimiK3ForConditionalGeneration,
)
from k3.hf.register import register as register
from k3.hf.state_cache import StateCache as StateCache
from k3.hf.tokenizer import KimiK3Tokenizer as KimiK3Tokenizer

__all__ = [
    "KimiK3Config",
    "KimiK3ForConditionalGeneration",
    "KimiK3Tokenizer",
    "StateCache",
    "extra",
    "register",
]
