"""Continue two texts with the model in the package.

python examples/generate.py
"""

import torch

import k3
from k3.model.generate import GenerateOptions, generate

model = k3.load("tiny", dtype=torch.float32)
tokenizer = k3.tokenizer("tiny")
prompts = [tokenizer.encode(text) for text in ("Return True if", "A list")]
options = GenerateOptions(max_tokens=40, temperature=0.7, seed=1)
for done in generate(model, prompts, options, tokenizer=tokenizer):
    print(repr(done.text), done.finish)
