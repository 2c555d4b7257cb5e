"""Prove everything, then write down what was proved.

    python tools/theorems.py

Writes k3/proof/proved.json, docs/theorems.md and the reasons in docs/limits.md; a test
fails where one of them is not what this would write.
"""

from pathlib import Path

from k3 import proof
from k3.proof import graphs, listing

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Prove, then write the three files."""
    records = proof.prove_all(check_log=False)
    records += [graphs.prove(name) for name in graphs.names()]
    (ROOT / "k3/proof/proved.json").write_text(listing.proved_json(records))
    (ROOT / "docs/theorems.md").write_text(listing.markdown())
    limits = ROOT / "docs/limits.md"
    limits.write_text(listing.with_reasons(limits.read_text()))
    print(f"{len(records)} theorems", *listing.counted(records), sep="\n")


if __name__ == "__main__":
    main()
