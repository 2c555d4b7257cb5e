"""What a server is told when it starts: names, keys, limits."""

from dataclasses import dataclass, field

import k3
from k3.config import K3Config
from k3.data.limits import ImageLimits
from k3.errors import RequestError

LOCAL = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """Names of the model, who may call, and how much one request may ask for.

    `max_model_len` 0 is the model's own context. `allowed_origins` are the web pages
    that may call besides the server's own; pages of this machine always may.
    """

    config: K3Config
    names: tuple[str, ...] = ("k3",)
    max_model_len: int = 0
    api_keys: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    image_limits: ImageLimits = field(default_factory=ImageLimits)
    max_body_bytes: int = 32 * 2**20
    max_images: int = 16
    max_image_bytes: int = 16 * 2**20
    max_prompts: int = 256
    max_n: int = 128
    max_logprobs: int = 20
    fingerprint: str = f"k3-{k3.__version__}"

    def __post_init__(self) -> None:
        """Refuse a server that nobody could call."""
        if not self.names or not all(self.names):
            raise RequestError(
                f"a served model needs a name: got {self.names!r}; give "
                "--served-model-name NAME"
            )
        if not all(self.api_keys):
            raise RequestError(
                "an API key must not be empty: leave --api-key out for an open server"
            )
        if self.config.eos_token_id is None:
            raise RequestError(
                "a served model needs the id that ends a message: its config.json has "
                "no eos_token_id; add it"
            )
        own = self.config.text.max_position_embeddings
        if not 0 <= self.max_model_len <= own:
            raise RequestError(
                f"max_model_len must be at most max_position_embeddings {own}: got "
                f"{self.max_model_len}; lower it"
            )

    @property
    def context_tokens(self) -> int:
        """Most tokens of a prompt and its answer together."""
        return self.max_model_len or self.config.text.max_position_embeddings
