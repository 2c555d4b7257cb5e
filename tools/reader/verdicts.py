"""Judge operators and claims whose verdict is older than their code, for the reader.

    python tools/reader/verdicts.py [--all]

Writes k3/reader/verdicts.json: exact equality with the equation, and the errors in
fp32 and bfloat16; and `k3 verify all` on the shipped model.
"""

import json
import sys
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


def claim(name: str) -> dict[str, Any]:
    """`k3 verify NAME` on the shipped model."""
    found = refine.CLAIMS[name]
    model = k3.load("tiny", dtype=torch.float32)
    setting = refine.Setting(model=model, tokens=40, seed=0, exact=True)
    outcome = refine.run(name, setting)
    return {
        "kind": "claim",
        "says": found.says,
        "exact": "EQUAL" if outcome.verdict == "holds" else "DIFFERENT",
        "checks": [each.line().strip() for each in outcome.checks],
    }


def modules() -> dict[str, str]:
    """For every name the module of k3.verify that judges it."""
    drawn = {name: each.draw.__module__ for name, each in OPERATORS.items()}
    return drawn | {name: each.run.__module__ for name, each in refine.CLAIMS.items()}


def kept() -> dict[str, dict[str, Any]]:
    """The verdicts that are still fresh, unless all are asked for."""
    if "--all" in sys.argv[1:]:
        return {}
    return {n: each for n, each in verdicts.verdicts().items() if verdicts.fresh(n)}


def main() -> int:
    """Judge what is stale and write the file; 1 where something differs."""
    found, old = {}, kept()
    for name, module in modules().items():
        if name not in old:
            made = operator(OPERATORS[name]) if name in OPERATORS else claim(name)
            made |= {"module": module, "digest": verdicts.digest(module)}
            print(name, made["exact"], made.get("errors", ""), flush=True)
            old[name] = made
        found[name] = old[name]
    FILE.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return int(any(each["exact"] == "DIFFERENT" for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
