"""The public PyTorch port pratikkorat26/KimiK3, with weights of its own."""

import copy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from timing import Timer, ids, loss


class Trainer:
    """AdamW on fp32 weights, or an optimizer that `make` builds over the model."""

    def __init__(self, model: torch.nn.Module, make: Any = None) -> None:
        self.model = model
        adamw = partial(torch.optim.AdamW, lr=1e-5, fused=True)
        self.optimizer = make(model) if make else adamw(model.parameters())

    def step(self, loss: torch.Tensor) -> None:
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


class Port:
    """pratikkorat26/KimiK3, chunks of 16; its head sees the last position only."""

    def __init__(self, where: str, dtype: torch.dtype, timer: Timer) -> None:
        folder, checkpoint = where.split(",")
        sys.path.insert(0, folder)
        from kimi_k3 import KimiK3Model

        torch.manual_seed(0)
        self.timer = timer
        if dtype is not torch.float32:
            raise SystemExit("the port runs in float32 alone")
        made = KimiK3Model(self.config(checkpoint)).eval()
        self.words = made.cfg.vocab_size
        self.whole = made
        self.model = copy.copy(made)
        self.model._modules = dict(made._modules)
        head = self.model.lm_head
        self.model.lm_head = torch.nn.Sequential(Last(), head)
        self.trainers: dict[str, Trainer] = {}

    @staticmethod
    def config(checkpoint: str) -> Any:
        from kimi_k3 import ModelConfig

        from k3.config import K3Config

        c = K3Config.load(Path(checkpoint) / "config.json").text
        return ModelConfig(
            vocab_size=c.vocab_size,
            hidden_size=c.hidden_size,
            n_layer=c.num_hidden_layers,
            n_heads=c.num_attention_heads,
            head_dim_k=c.linear_attn_config.head_dim,
            head_dim_v=c.linear_attn_config.head_dim,
            chunk_size=16,
            gate_rank=c.linear_attn_config.head_dim,
            kv_latent_dim=c.kv_lora_rank,
            q_lora_rank=c.q_lora_rank,
            qk_content_dim=c.qk_nope_head_dim,
            qk_shared_dim=c.qk_rope_head_dim,
            v_head_dim=c.v_head_dim,
            latent_size=c.routed_expert_hidden_size,
            moe_intermediate_size=c.moe_intermediate_size,
            n_experts=c.num_experts,
            n_experts_per_tok=c.num_experts_per_token,
            n_shared_experts=c.num_shared_experts,
            n_dense_layers=c.first_k_dense_replace,
            intermediate_size=c.intermediate_size,
            attn_res_block_size=c.attn_res_block_size,
        )

    @torch.inference_mode()
    def prefill(self, tokens: int) -> float:
        row = ids(self.words, 1, tokens)
        run = self.model
        return self.timer.seconds(lambda: run(row, mode="chunk", use_cache=True))

    @torch.inference_mode()
    def decode(self, batch: int, context: int, steps: int) -> float:
        rows = ids(self.words, batch, context)
        logits, cache = self.model(rows, mode="chunk", use_cache=True)

        def step() -> None:
            nonlocal logits, cache
            token = logits[:, -1].argmax(-1, keepdim=True)
            logits, cache = self.model(
                token, mode="recurrent", cache=cache, use_cache=True
            )

        return self.timer.steps(step, steps)

    def train(self, batch: int, tokens: int) -> float:
        return self.step("adamw", batch, tokens)

    def muon(self, batch: int, tokens: int) -> float:
        return self.step("muon", batch, tokens)

    def step(self, optimizer: str, batch: int, tokens: int) -> float:
        from kimi_k3.training.muon import build_muon_optimizer

        if optimizer not in self.trainers:
            make = partial(build_muon_optimizer, muon_lr=1e-5, adam_lr=1e-5)
            chosen = make if optimizer == "muon" else None
            whole = copy.deepcopy(self.whole).train()
            self.trainers[optimizer] = Trainer(whole, chosen)
        trainer, rows = self.trainers[optimizer], ids(self.words, batch, tokens)

        def step() -> None:
            trainer.step(loss(trainer.model(rows, mode="chunk")[0], rows))

        return self.timer.seconds(step)


class Last(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, -1:]
