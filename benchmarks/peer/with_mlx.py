"""mlx-lm and mlx-vlm on `mlx[cpu]`, which read the checkpoint as it is."""

from pathlib import Path
from typing import Any

import torch
from timing import Timer, ids


class Mlx:
    """mlx-lm: one array after another is waited for, as MLX computes when asked."""

    def __init__(self, where: str, dtype: torch.dtype, timer: Timer) -> None:
        import mlx.core as mx
        from mlx_lm.utils import load_model

        mx.set_default_device(mx.cpu)
        self.mx, self.timer = mx, timer
        self.model, config = load_model(Path(where), **self.options())
        if dtype is torch.float32:
            self.model.set_dtype(mx.float32)
        self.words = config.get("text_config", config)["vocab_size"]

    def options(self) -> dict[str, Any]:
        """What `load_model` is told."""
        return {}

    def run(self, rows: Any, cache: Any) -> Any:
        """Return the token after rows [1 T]."""
        logits = self.logits(self.mx.array(rows), cache)[:, -1]
        token = self.mx.argmax(logits, -1)[None]
        self.mx.eval(token, [each.state for each in cache])
        return token

    def logits(self, rows: Any, cache: Any) -> Any:
        """Return those of every position."""
        return self.model(rows, cache=cache)

    def start(self, tokens: int) -> tuple[Any, Any]:
        """Return a row of that many tokens and an empty cache."""
        from mlx_lm.models.cache import make_prompt_cache

        return ids(self.words, 1, tokens).tolist(), make_prompt_cache(self.model)

    def prefill(self, tokens: int) -> float:
        row, cache = self.start(tokens)
        return self.timer.seconds(lambda: self.run(row, cache))

    def decode(self, batch: int, context: int, steps: int) -> float:
        if batch != 1:
            raise SystemExit(f"mlx is timed with batch 1: got {batch}")
        row, cache = self.start(context)
        token = self.run(row, cache)

        def step() -> None:
            nonlocal token
            token = self.run(token, cache)

        return self.timer.steps(step, steps)


class MlxVlm(Mlx):
    """The language model of mlx-vlm alone: the checkpoint has no vision tower."""

    def options(self) -> dict[str, Any]:
        from mlx_vlm.models.kimi_k3 import config, language

        class Text(config.TextConfig):
            @classmethod
            def from_dict(cls, found: dict[str, Any]) -> Any:
                return config.TextConfig.from_dict(found["text_config"])

        class Model(language.LanguageModel):
            def sanitize(self, weights: dict[str, Any]) -> dict[str, Any]:
                named = super().sanitize(weights)
                return {k.removeprefix("language_model."): v for k, v in named.items()}

        return {"get_model_classes": lambda config: (Model, Text)}

    def logits(self, rows: Any, cache: Any) -> Any:
        return self.model(rows, cache=cache).logits
