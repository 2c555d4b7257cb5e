"""A recipe that trains in seconds: every mechanism, five layers."""

import dataclasses
from functools import cache

from k3 import recipes
from k3.config import K3Config
from k3.data.corpora import Corpus, Document
from k3.train.recipe import Recipe

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "kv_lora_rank": 16,
    "moe_intermediate_size": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 5,
    "num_key_value_heads": 2,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "routed_expert_hidden_size": 32,
    "v_head_dim": 12,
    "bos_token_id": 300,
    "eos_token_id": 301,
    "pad_token_id": 555,
    "vocab_size": 556,
}
LINEAR = {
    "full_attn_layers": [4, 5],
    "head_dim": 12,
    "kda_layers": [1, 2, 3],
    "num_heads": 3,
}

WORDS = "The assert statement is a way to insert debugging checks into a program. "


def config() -> K3Config:
    data = recipes.tiny().config.to_dict()
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        data[key] = SMALL[key]
    data["media_placeholder_token_id"] = 321
    del data["vision_config"]
    data["text_config"] |= SMALL
    data["text_config"]["linear_attn_config"] |= LINEAR
    return K3Config.from_dict(data)


@cache
def recipe() -> Recipe:
    """5 layers, MLA at the last two; 300 ranks."""
    return dataclasses.replace(
        recipes.tiny(),
        name="small",
        config=config(),
        num_ranks=300,
        steps=6,
        batch=2,
        tokens=33,
        mixture=(("text", 1.0),),
        optimizer="adamw",
        qk_clip=0.0,
        balance="sign",
        bias_rate=1e-2,
        learning_rate=2.5e-3,
        schedule="trapezoid",
        warmup=0.02,
        decay=0.6,
        beta2=0.98,
        log_steps=2,
        window=96,
    )


def corpus() -> Corpus:
    """One sentence, with numbers in it, in ten documents and one that is held out."""
    lines = [f"{WORDS}Line {i} of {i % 7} names {i * i}.\n" for i in range(120)]
    train = [
        Document(name=f"d{i}", text="".join(lines[i : i + 10]))
        for i in range(0, 100, 10)
    ]
    kept = [Document(name="kept", text="".join(lines[100:]))]
    return Corpus(
        name="stdlib",
        source="sentences",
        licence="PSF-2.0",
        version="3.11.0",
        train=tuple(train),
        heldout=tuple(kept),
    )
