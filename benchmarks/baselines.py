"""What the shipped model has to beat on its held-out text.

python benchmarks/baselines.py [--json]
"""

import argparse
import json

from k3.data import corpora
from k3.train import baselines


def measure() -> dict[str, object]:
    corpus = corpora.stdlib()
    train, heldout = corpora.join(corpus.train), corpora.join(corpus.heldout)
    xz, alone = baselines.xz_bits_per_byte(train, heldout)
    rows = {
        f"Kneser-Ney, {order - 1} bytes of context": baselines.KneserNey.fit(
            train, order
        ).bits_per_byte(heldout, train)
        for order in range(1, baselines.ORDER_MAX + 1)
    }
    return {
        "corpus": corpus.name,
        "python": corpus.version,
        "sha256": corpus.sha256,
        "train_bytes": len(train),
        "heldout_bytes": len(heldout),
        "bits_per_byte": {
            "xz -9e, held-out after training text": xz,
            "xz -9e, held-out alone": alone,
            **rows,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    found = measure()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"corpus {found['corpus']}, Python {found['python']}, {found['sha256']}")
    print(f"training {found['train_bytes']:,} B, held-out {found['heldout_bytes']:,} B")
    scores = found["bits_per_byte"]
    assert isinstance(scores, dict)
    for name, bits in scores.items():
        print(f"{bits:8.4f}  {name}")


if __name__ == "__main__":
    main()
