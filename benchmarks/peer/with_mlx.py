"""mlx-lm on `mlx[cpu]`, which reads the checkpoint as it is."""

from pathlib import Path
from typing import Any

import torch
from timing import Timer, ids


class Mlx:
    """One array after another is waited for, as MLX computes when asked."""

    def __init__(self, where: str, dtype: torch.dtype, timer: Timer) -> None:
        import mlx.core as mx
        from mlx_lm.utils import load_model

        mx.set_default_device(mx.cpu)
        self.mx, self.timer = mx, timer
        self.model, config = load_model(Path(where))
        if dtype is torch.float32:
            self.model.set_dtype(mx.float32)
        self.words = config.get("text_config", config)["vocab_size"]

    def run(self, rows: Any, cache: Any) -> Any:
        """Return the token after rows [1 T]."""
        logits = self.model(self.mx.array(rows), cache=cache)[:, -1]
        token = self.mx.argmax(logits, -1)[None]
        self.mx.eval(token, [each.state for each in cache])
        return token

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
