"""kimi_k3 in the tables behind transformers' Auto classes; importing this enters it."""

from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

from k3.hf.config import KimiK3Config
from k3.hf.model import KimiK3ForConditionalGeneration
from k3.hf.tokenizer import KimiK3Tokenizer, TikTokenTokenizer


def register() -> None:
    """Enter config, model and tokenizer; a second time changes nothing."""
    AutoConfig.register("kimi_k3", KimiK3Config, exist_ok=True)
    for auto in (AutoModel, AutoModelForCausalLM):
        auto.register(KimiK3Config, KimiK3ForConditionalGeneration, exist_ok=True)
    AutoTokenizer.register(
        KimiK3Config,
        tokenizer_class=KimiK3Tokenizer,
        slow_tokenizer_class=TikTokenTokenizer,
        exist_ok=True,
    )


register()
