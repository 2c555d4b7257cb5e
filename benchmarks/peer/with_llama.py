"""llama.cpp, through the shared library of llama-cpp-python."""

import numpy as np
import torch
from timing import Timer, ids


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

        def answer() -> None:
            self.run(row)
            self.best()

        return self.timer.seconds(answer)

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
