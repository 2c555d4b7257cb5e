"""What an engine may use: sequences, tokens of a step, bytes, by class of request."""

from dataclasses import dataclass

from k3.config import K3Config, sizes
from k3.errors import RequestError
from k3.serve.layout import CacheOptions

FP32 = 4

LEAST = {
    "max_num_seqs": 1,
    "max_num_batched_tokens": 1,
    "max_model_len": 0,
    "state_bytes": 1,
    "long_tokens": 1,
    "max_num_long_seqs": 0,
    "max_num_long_tokens": 1,
    "long_state_bytes": 1,
    "max_waiting": 0,
    "num_speculative_tokens": 0,
    "cache_dir_bytes": 1,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineOptions:
    """Limits of an engine. A prompt of more than `long_tokens` makes a long request.

    Short and long requests have budgets of their own, so that neither waits for the
    other: sequences under way, tokens of one step, bytes of states. `max_model_len` 0
    is the model's own context; no `cache` means that no prefix is kept. `cache_dir` is
    a folder for states that outlive the process, at most `cache_dir_bytes` of them.
    With `routes` an output tells which experts every token took that was run for it.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    max_model_len: int = 0
    state_bytes: int = 2**32
    long_tokens: int = 32768
    max_num_long_seqs: int = 1
    max_num_long_tokens: int = 1024
    long_state_bytes: int = 2**32
    max_waiting: int = 1024
    cache: CacheOptions | None = None
    num_speculative_tokens: int = 0
    cache_dir: str = ""
    cache_dir_bytes: int = 2**30
    routes: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range, and steps too short for their rows."""
        for name, least in LEAST.items():
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole and value >= least):
                raise RequestError(
                    f"{name} must be a whole number, at least {least}: got {value!r}"
                )
        if self.cache_dir and self.cache is None:
            raise RequestError(
                f"cache_dir keeps what the prefix cache holds: got {self.cache_dir!r} "
                "and no cache; turn prefix caching on or leave it out"
            )
        if self.routes and self.num_speculative_tokens:
            raise RequestError(
                "routes are told of tokens that are run one by one: got "
                f"num_speculative_tokens {self.num_speculative_tokens}; leave one out"
            )
        self._fits("max_num_batched_tokens", "max_num_seqs")
        self._fits("max_num_long_tokens", "max_num_long_seqs")

    def _fits(self, tokens: str, seqs: str) -> None:
        each = 1 + self.num_speculative_tokens
        need = getattr(self, seqs) * each
        if getattr(self, tokens) < need:
            raise RequestError(
                f"{tokens} must be at least {seqs} times {each}, the tokens of a "
                f"decoding step: got {getattr(self, tokens)} for {need}; raise it or "
                f"lower {seqs}"
            )


def kept_bytes(config: K3Config, keep_inputs: int, itemsize: int) -> int:
    """Bytes that a sequence's state takes more to be able to go back.

    Each KDA layer then has a second memory and window, and the inputs of so many
    tokens: those of the convolution at `itemsize`, those of the memory in fp32.
    """
    if not keep_inputs:
        return 0
    text, linear = config.text, config.text.linear_attn_config
    keys = linear.num_heads * linear.head_dim
    values = linear.num_heads * linear.v_dim
    raw = (2 * keys + values) * itemsize
    each = raw + (2 * keys + values + linear.num_heads) * FP32
    kept = len(text.kda_layers) * keep_inputs * each
    return kept + sizes.memory(config, 0, itemsize).fixed_bytes
