"""K3 with and without AttnRes at four sizes: loss against compute, and the ratio.

    python benchmarks/scaling.py [--out docs/pictures] [--seeds 2]

Trains 16 models of 0.1 to 0.9 M active parameters on bytes of the standard library,
one thread, and writes scaling.json after each run and scaling.svg at the end. What was
trained before is read from scaling.json, so a run that was cut goes on.
"""

import argparse
import dataclasses
import itertools
import json
from pathlib import Path

from curves import held_out, text

from k3 import recipes
from k3.data.tokenizer import Tokenizer
from k3.train import scaling
from k3.train.scaling import Point


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    path = args.out / "scaling.json"
    points = [Point(**p) for p in json.loads(path.read_text())] if path.exists() else []
    tokenizer = Tokenizer({bytes([i]): i for i in range(256)})
    data, held = text(tokenizer), held_out(tokenizer, 256, 32)

    def tell(point: Point) -> None:
        points.append(point)
        path.write_text(json.dumps([dataclasses.asdict(p) for p in points], indent=1))
        print(point, flush=True)

    for seed, width in itertools.product(range(args.seeds), recipes.SCALING):
        recipe = recipes.scaling(width)
        size = scaling.sizes.parameters(recipe.config).active
        done = {p.variant for p in points if (p.seed, p.parameters) == (seed, size)}
        left = {n: v for n, v in scaling.VARIANTS.items() if n not in done}
        scaling.sweep([recipe], data, held, seeds=[seed], variants=left, tell=tell)
    result = scaling.compare(points)
    (args.out / "scaling.svg").write_text(scaling.picture(points, result))
    print(result)


if __name__ == "__main__":
    main()
