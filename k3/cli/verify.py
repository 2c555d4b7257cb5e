"""`k3 verify`: the claims about a checkpoint, run on its shapes and its weights."""

from typing import TYPE_CHECKING

from k3.cli import loading, options, output, settings
from k3.errors import ProofError

if TYPE_CHECKING:
    from k3.verify.refine import Check, Setting

CHECK_FAILED = 1


def verify(
    claim: options.Claim,
    model: options.ModelOrTiny = "tiny",
    *,
    tokens: options.CheckedTokens = 40,
    seed: options.DrawSeed = 0,
    exact: options.Exact = True,
    tolerance: options.Tolerance = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Check a claim on a checkpoint and name its theorems; exit 1 where it fails.

    \b
    k3 verify stream
    k3 verify all tests/golden/tiny_release --no-exact
    k3 verify quant tiny --json
    """
    settings.one_of("CLAIM", claim, (*options.CLAIMS, "all"))
    loading.check(dtype, device, "packed")
    path = loading.find(model)
    from k3.verify import refine

    loaded = loading.load(path, dtype=dtype, device=device, experts="packed")
    setting = refine.Setting(
        model=loaded.model, tokens=tokens, seed=seed, exact=exact, tolerance=tolerance
    )
    names = options.CLAIMS if claim == "all" else (claim,)
    try:
        found = [run(name, setting, as_json=json) for name in names]
    except ProofError as error:
        print(f"not checked: {error}")
        return CHECK_FAILED
    if json:
        value = {"ok": all(ok for ok, _ in found), "claims": [v for _, v in found]}
        output.json_value(value)
    return 0 if all(ok for ok, _ in found) else CHECK_FAILED


def run(name: str, setting: "Setting", *, as_json: bool) -> tuple[bool, object]:
    """One claim: whether it holds, and what was found; a line for each check."""
    from k3.verify import refine

    def progress(check: "Check") -> None:
        if not as_json:
            print(check.line(), flush=True)

    if not as_json:
        print(f"{name}: {refine.CLAIMS[name].says}", flush=True)
    outcome = refine.run(name, setting, progress)
    if not as_json:
        print(outcome.closing(), flush=True)
    return outcome.ok, outcome.to_dict()
