"""One implementation in a process of its own, asked line by line by peers.py.

    python benchmarks/peer KIND WHERE DTYPE THREADS CLOCK

KIND is k3 (a checkpoint), llama (a GGUF file, with llama-cpp-python), mlx-lm or mlx-vlm
(a checkpoint), or port (the folder of a public PyTorch port, `FOLDER,CHECKPOINT`: the
same shapes, random weights of its own; fp32 alone, its experts fail in bfloat16 and
under autocast). Reads `prefill TOKENS`, `decode BATCH CONTEXT
STEPS`, `train BATCH TOKENS` or `muon BATCH TOKENS` and answers with seconds: of a
prompt, of a step, of a training step with AdamW or Muon. K3 trains as its recipes do,
weights rounded to what a file holds after every step.
"""

import sys

import torch
from timing import Timer
from with_k3 import K3
from with_llama import Llama
from with_mlx import Mlx, MlxVlm
from with_port import Port

KINDS = {
    "k3": K3,
    "port": Port,
    "llama": Llama,
    "mlx-lm": Mlx,
    "mlx-vlm": MlxVlm,
}


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
