"""Typeset every formula of the chapters into k3/reader/static/math.json.

    python tools/reader/formulas.py

Needs Node, and fetches KaTeX once into .venv/reader; what it writes is committed, so
nobody else needs either.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from k3.reader import check, formulas

HERE = Path(__file__).resolve().parent
NODE = HERE.parents[1] / ".venv" / "reader"
FILE = HERE.parents[1] / "k3" / "reader" / "static" / "math.json"
# The TeX source inside the MathML, which nobody reads twice.
ANNOTATION = re.compile(r"<annotation .*?</annotation>", re.S)


def main() -> int:
    """Write the cache anew, one formula a line, in order; 1 where TeX is wrong."""
    wanted = sorted({formulas.key(t, display=d) for _, t, d in check.formulas_used()})
    given = [[key.lstrip("$"), key.startswith("$$")] for key in wanted]
    done = subprocess.run(
        ["node", str(HERE / "formulas.mjs"), str(installed())],
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        return 1
    made = [ANNOTATION.sub("", each) for each in json.loads(done.stdout)]
    cache = dict(zip(wanted, made, strict=True))
    FILE.write_text(json.dumps(cache, ensure_ascii=False, indent=0) + "\n")
    print(f"{len(cache)} formulas, {FILE.stat().st_size:,} bytes")
    return 0


def installed() -> Path:
    """The folder with the pinned KaTeX."""
    if not (NODE / "node_modules" / "katex").is_dir():
        NODE.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, NODE)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=NODE, check=True)
    return NODE


if __name__ == "__main__":
    sys.exit(main())
