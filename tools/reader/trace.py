"""Record what the shipped model keeps and chooses on one text, for the reader's pages.

    python tools/reader/trace.py

Writes k3/reader/trace.json, which is committed: building pages runs no model. To be run
again whenever the shipped model changes; `k3 read --check` says so.
"""

import json
from pathlib import Path

from k3.reader import trace

FILE = Path(trace.__file__).with_name(trace.FILE)


def main() -> None:
    """Run the model once over the text, and keep what it shows."""
    found = {"digest": trace.digest(), **trace.record(trace.TEXT)}
    FILE.write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(found['tokens'])} tokens, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
