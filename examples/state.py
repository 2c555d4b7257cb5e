"""A state is a value: carry it, fork it, take tokens back, store it.

python examples/state.py
"""

import torch

import k3
from k3.model import DecodeState

model = k3.load("tiny", dtype=torch.float32)
ids = torch.arange(40)[None]

with torch.no_grad():
    whole = model(ids)
    # The first 30 tokens at once, the others one by one. keep_inputs=8 lets rewind take
    # back up to 8 tokens. In this model that costs 126 kB once and 18.5 kB a token, in
    # fp32; without rewind leave it at 0.
    _, state = model(ids[:, :30], state=model.init_state(1, keep_inputs=8))
    for position in range(30, 40):
        before = state.fork()
        logits, state = model.step(ids[:, position : position + 1], state)
    print("step against whole:", float((logits[0, -1] - whole[0, -1]).abs().max()))

    # Two ways from one place; the last three tokens taken back; through storage.
    other, _ = model.step(torch.tensor([[7]]), before)
    size, length = state.nbytes, int(state.lengths[0])
    again = state.rewind(3)
    stored = DecodeState.unpack(again.pack())
    replay, _ = model(ids[:, 37:], state=stored)
    print("after rewind and storage:", float((replay[0] - whole[0, 37:]).abs().max()))
    print("another token, another answer:", not torch.allclose(other, logits))
    print(f"{size:,} bytes for {length} tokens")
