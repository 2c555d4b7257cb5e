"""Keep what the last proof of every theorem has shown, for the reader's pages.

    k3 prove --all --json | python tools/reader/receipts.py

Writes k3/reader/receipts.json, which is committed: building pages needs no solver.
"""

import json
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "k3" / "reader" / "receipts.json"
KEPT = ("words", "statement", "hypotheses", "scope", "level", "axioms", "digest")


def main() -> int:
    """One theorem a line; 1 where one is not proved."""
    found = json.load(sys.stdin)
    if found["failures"]:
        print(f"not proved: {', '.join(found['failures'])}", file=sys.stderr)
        return 1
    kept = {
        each["name"]: {name: each.get(name, []) for name in (*KEPT, "steps", "mutants")}
        for each in found["theorems"]
    }
    rows = (
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in kept.items()
    )
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(f"{len(kept)} receipts, {FILE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
