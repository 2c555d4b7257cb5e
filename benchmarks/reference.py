"""Memory and time of reference weights: the whole model, and two layers at a time.

    python benchmarks/reference.py [--layers 41] [--hidden 768]

Makes a checkpoint of random weights in a temporary folder, then in a process of its own
for each way: resident memory beyond what Python and torch took before, at its most, and
seconds of a pass over 256 tokens. Both print one digest of their log-probabilities.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import k3
from k3.checkpoint.save import save
from k3.config import K3Config
from k3.model import Model
from k3.train import reference

MIB = 2**20


def config(layers: int, hidden: int) -> K3Config:
    """The shipped model's, deeper and wider, without its tower and its MTP layer."""
    made = k3.load("tiny").config.to_dict()
    made.pop("vision_config", None)
    text = made["text_config"]
    mla = sorted({*range(4, layers + 1, 4), layers})
    text |= {"num_hidden_layers": layers, "hidden_size": hidden}
    text |= {"num_nextn_predict_layers": 0, "moe_intermediate_size": hidden // 2}
    text["linear_attn_config"] |= {
        "full_attn_layers": mla,
        "kda_layers": [i for i in range(1, layers + 1) if i not in mla],
    }
    return K3Config.from_dict(made)


def resident(name: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at its most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(x for x in lines if x.startswith(name)).split()[1])


def measure(way: str, folder: Path) -> None:
    """Print what one way takes; runs in a process of its own."""
    torch.set_num_threads(1)
    ids = torch.arange(256)[None] % 1000
    # From here on the most is counted anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")

    def run(model: Model) -> None:
        seconds = []
        for _ in range(4):
            began = time.perf_counter()
            with torch.no_grad():
                logits = model(ids)
            seconds.append(time.perf_counter() - began)
        assert isinstance(logits, torch.Tensor)
        told = hashlib.sha256(logits.log_softmax(-1).numpy().tobytes()).hexdigest()
        print(
            json.dumps(
                {
                    "way": way,
                    "mib": round((resident("VmHWM") - before) / MIB),
                    "seconds": round(sorted(seconds)[1], 3),
                    "digest": told[:16],
                }
            )
        )

    if way == "whole":
        run(k3.load(folder, experts="dequantized"))
    else:
        with reference.streamed(folder, experts="dequantized") as model:
            run(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=41)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--way", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        measure(args.way, args.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Model(config(args.layers, args.hidden)).init_weights(1)
        save(made, folder)
        layers = made.language_model.model.layers
        each = [sum(p.nbytes for p in layer.parameters()) for layer in layers]
        rest = sum(p.nbytes for p in made.parameters()) - sum(each)
        sizes = {"layers": sum(each), "largest_two": 2 * max(each), "rest": rest}
        print(json.dumps({k: round(v / MIB) for k, v in sizes.items()}))
        del made, layers
        for way in ("whole", "streamed"):
            here = [sys.executable, __file__, "--way", way, "--folder", folder]
            subprocess.run(here, check=True)


if __name__ == "__main__":
    main()
