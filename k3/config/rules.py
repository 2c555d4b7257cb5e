"""What makes a configuration well formed: Config.WF and what it leaves open.

A rule names a field, says what is expected, and decides. Every rule is tried, so that
one message lists all wrong fields; rules about unreadable fields are skipped.
"""

from typing import TYPE_CHECKING, Any

from k3.config.quantization_rules import QUANTIZATION
from k3.config.rule import Rule, equal, ids, tried, value_at
from k3.config.section import Unreadable, Wrong
from k3.config.text_rules import LINEAR, TEXT
from k3.config.vision_rules import VISION

if TYPE_CHECKING:
    from k3.config.config import K3Config


def check(config: "K3Config") -> list[Wrong]:
    """Return every wrong field of a config, or of a view of one."""
    text = "" if config.bare else "text_config."
    found = tried(_WHOLE, config, "")
    for name, path, rules in (
        ("text_config", text, TEXT),
        ("text_config.linear_attn_config", f"{text}linear_attn_config.", LINEAR),
        (
            "text_config.quantization_config",
            f"{text}quantization_config.",
            QUANTIZATION,
        ),
        ("vision_config", "vision_config.", VISION),
    ):
        found += tried(rules, _section(config, name), path)
    return found


def _section(config: Any, name: str) -> Any:
    try:
        return value_at(config, name)
    except Unreadable:
        return None


def _gate_is_known(config: Any) -> bool:
    floor = config.text_config.linear_attn_config.gate_lower_bound
    return config.bare or floor is not None


def _media_is_named(config: Any) -> bool:
    return config.vision_config is None or config.media_placeholder_token_id is not None


def _same_width(config: Any) -> bool:
    vision, text = config.vision_config, config.text_config
    return vision is None or vision.text_hidden_size == text.hidden_size


def _same_quantization(config: Any) -> bool:
    top, text = config.quantization_config, config.text_config.quantization_config
    return top is None or top == text


_WHOLE = [
    *equal({"tie_word_embeddings": False}),
    Rule(
        "media_placeholder_token_id",
        "a token id, because vision_config is present",
        _media_is_named,
    ),
    *ids("bos_token_id eos_token_id pad_token_id media_placeholder_token_id"),
    Rule(
        "text_config.linear_attn_config.gate_lower_bound",
        "a negative number: only a bare kimi_linear config has the softplus gate",
        _gate_is_known,
    ),
    Rule("vision_config.text_hidden_size", "text_config.hidden_size", _same_width),
    Rule(
        "quantization_config",
        "the same as text_config has, or none",
        _same_quantization,
    ),
]
