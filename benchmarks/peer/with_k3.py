"""K3 itself, its weights held as the verbs that answer or train hold them."""

from typing import Any

import torch
from timing import Timer, ids, loss


class K3Trainer:
    """Masters as a run has them; the model may be narrower than fp32."""

    def __init__(self, model: Any, optimizer: str) -> None:
        from k3.train.masters import Masters

        # The selection bias is moved by the balance, not by a gradient.
        for name, p in model.named_parameters():
            p.requires_grad_("e_score" not in name)
        self.model = model
        self.masters = Masters(
            model, betas=(0.9, 0.95), weight_decay=0.1, optimizer=optimizer
        )

    def step(self, loss: torch.Tensor) -> None:
        held = list(self.masters.parameters.values())
        found = torch.autograd.grad(loss, held, allow_unused=True)
        wide = [None if g is None else g.float() for g in found]
        self.masters.step(wide, 1e-5, 1.0)


class K3:
    def __init__(self, where: str, dtype: torch.dtype, timer: Timer) -> None:
        import k3

        self.where, self.dtype, self.timer = where, dtype, timer
        self.model = k3.load(where, dtype=dtype, weights="stored")
        self.words = self.model.config.text.vocab_size
        self.trainers: dict[str, K3Trainer] = {}

    @torch.inference_mode()
    def prefill(self, tokens: int) -> float:
        row = ids(self.words, 1, tokens)
        model = self.model
        return self.timer.seconds(
            lambda: model(row, state=model.init_state(1), logits="last")
        )

    @torch.inference_mode()
    def decode(self, batch: int, context: int, steps: int) -> float:
        rows, state = ids(self.words, batch, context), self.model.init_state(batch)
        logits, state = self.model(rows, state=state, logits="last")

        def step() -> None:
            nonlocal logits, state
            token = logits[:, -1].argmax(-1, keepdim=True)
            logits, state = self.model.step(token, state)

        return self.timer.steps(step, steps)

    def train(self, batch: int, tokens: int) -> float:
        return self.step("adamw", batch, tokens)

    def muon(self, batch: int, tokens: int) -> float:
        return self.step("muon", batch, tokens)

    def step(self, optimizer: str, batch: int, tokens: int) -> float:
        import k3

        if self.trainers.get(optimizer) is None:
            model = k3.load(self.where, dtype=self.dtype, experts="dequantized")
            self.trainers[optimizer] = K3Trainer(model.requires_grad_(), optimizer)
        trainer, rows = self.trainers[optimizer], ids(self.words, batch, tokens)
        return self.timer.seconds(lambda: trainer.step(loss(trainer.model(rows), rows)))
