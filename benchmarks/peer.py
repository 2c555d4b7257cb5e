"""One implementation in a process of its own, asked line by line by peers.py.

    python benchmarks/peer.py KIND WHERE DTYPE THREADS CLOCK

KIND is k3 (a checkpoint), llama (a GGUF file, with llama-cpp-python), or port (the
folder of a public PyTorch port, `FOLDER,CHECKPOINT`: the same shapes, random weights of
its own; fp32 alone, its experts fail in bfloat16 and under autocast). Reads `prefill
TOKENS`, `decode BATCH CONTEXT STEPS`, `train BATCH TOKENS` or `muon BATCH TOKENS` and
answers with seconds: of a prompt, of a step, of a training step with AdamW or Muon. K3
trains as its recipes do, weights rounded to what a file holds after every step.
"""

import copy
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
WARM = 3


class Timer:
    def __init__(self, clock: str) -> None:
        self.now = CLOCKS[clock]

    def seconds(self, run: Callable[[], object]) -> float:
        start = self.now()
        run()
        return self.now() - start

    def steps(self, run: Callable[[], object], count: int) -> float:
        for _ in range(WARM):
            run()
        return statistics.median(self.seconds(run) for _ in range(count))


def ids(words: int, batch: int, tokens: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return torch.randint(words - 16, (batch, tokens), generator=generator)


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


def loss(logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    flat = logits[:, :-1].flatten(0, 1).float()
    return torch.nn.functional.cross_entropy(flat, rows[:, 1:].flatten())


class K3:
    def __init__(self, where: str, dtype: torch.dtype, timer: Timer) -> None:
        import k3

        self.where, self.dtype, self.timer = where, dtype, timer
        self.model = k3.load(where, dtype=dtype)
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


class Llama:
    """libllama through llama-cpp-python's low-level functions; batch 1."""

    def __init__(self, where: str, _: torch.dtype, timer: Timer) -> None:
        from llama_cpp import llama_cpp as api

        self.api, self.timer = api, timer
        self.quiet = api.llama_log_callback(lambda *_: None)
        api.llama_log_set(self.quiet, None)
        api.llama_backend_init()
        made = api.llama_model_default_params()
        self.model = api.llama_model_load_from_file(where.encode(), made)
        options = api.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = 2048, 2048, 512
        options.n_threads = options.n_threads_batch = torch.get_num_threads()
        self.context = api.llama_init_from_model(self.model, options)
        if not self.context:
            raise SystemExit(f"libllama cannot run {where}")
        self.words = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))

    def run(self, tokens: list[int]) -> None:
        held = (self.api.llama_token * len(tokens))(*tokens)
        batch = self.api.llama_batch_get_one(held, len(tokens))
        code = self.api.llama_decode(self.context, batch)
        if code:
            raise SystemExit(f"llama_decode failed with {code}")

    def best(self) -> int:
        found = self.api.llama_get_logits_ith(self.context, -1)
        return int(np.ctypeslib.as_array(found, (self.words,)).argmax())

    def clear(self) -> None:
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)

    def prefill(self, tokens: int) -> float:
        self.clear()
        row = ids(self.words, 1, tokens)[0].tolist()
        return self.timer.seconds(lambda: (self.run(row), self.best()))

    def decode(self, batch: int, context: int, steps: int) -> float:
        if batch != 1:
            raise SystemExit(f"llama is timed with batch 1: got {batch}")
        self.prefill(context)
        token = self.best()

        def step() -> None:
            nonlocal token
            self.run([token])
            token = self.best()

        return self.timer.steps(step, steps)


KINDS = {"k3": K3, "port": Port, "llama": Llama}


def main() -> None:
    kind, where, dtype, threads, clock = sys.argv[1:]
    torch.set_num_threads(int(threads))
    made = KINDS[kind](where, getattr(torch, dtype), Timer(clock))
    print("ready", flush=True)
    for line in sys.stdin:
        name, *numbers = line.split()
        print(getattr(made, name)(*map(int, numbers)), flush=True)


if __name__ == "__main__":
    main()
