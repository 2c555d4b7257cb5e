"""Judge every operator and every claim anew, for the reader's pages.

    python tools/reader/verdicts.py

Writes k3/reader/verdicts.json: exact equality with the equation, and the errors in
fp32 and bfloat16; and `k3 verify all` on the shipped model.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import k3
from k3.reader import verdicts
from k3.verify import refine
from k3.verify.operators import OPERATORS
from k3.verify.operators.check import check
from k3.verify.operators.operator import Operator

FILE = Path(__file__).resolve().parents[2] / "k3" / "reader" / "verdicts.json"


def operator(found: Operator) -> dict[str, Any]:
    """Ours against the equation, over the reals and in two float types."""
    errors, exact = {}, None
    for dtype, name in ((torch.float32, "float32"), (torch.bfloat16, "bfloat16")):
        first = dtype == torch.float32
        verdict = check(found.program, found, dtype=dtype, exact=found.exact and first)
        exact = verdict.exact.verdict if verdict.exact else exact
        worst = max((each.relative for each in verdict.outputs), default=0.0)
        errors[name] = {"error": worst, "allowed": found.bound(dtype)}
    return {"kind": "operator", "says": found.says, "exact": exact, "errors": errors}


def claims() -> Iterator[tuple[str, dict[str, Any]]]:
    """`k3 verify` on the shipped model, claim by claim."""
    model = k3.load("tiny", dtype=torch.float32)
    setting = refine.Setting(model=model, tokens=40, seed=0, exact=True)
    for name, claim in refine.CLAIMS.items():
        outcome = refine.run(name, setting)
        checks = [each.line().strip() for each in outcome.checks]
        exact = "EQUAL" if outcome.verdict == "holds" else "DIFFERENT"
        yield (
            name,
            {
                "kind": "claim",
                "says": claim.says,
                "exact": exact,
                "checks": checks,
                "module": claim.run.__module__,
            },
        )


def main() -> int:
    """Write the file; 1 where something is not what it should be."""
    found = {}
    for name, each in OPERATORS.items():
        found[name] = operator(each) | {"module": module(each)}
        print(name, found[name]["exact"], found[name]["errors"], flush=True)
    for name, value in claims():
        found[name] = value
        print(name, value["exact"], flush=True)
    for value in found.values():
        value["digest"] = verdicts.digest(value["module"])
    FILE.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return int(any(each["exact"] == "DIFFERENT" for each in found.values()))


def module(found: Operator) -> str:
    """The module of k3.verify.operators that defines it."""
    return str(found.draw.__module__)


if __name__ == "__main__":
    sys.exit(main())
