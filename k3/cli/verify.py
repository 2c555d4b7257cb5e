"""`k3 verify`: the claims about a checkpoint, run on its shapes and its weights."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from k3.cli import enclose, loading, options, output, settings
from k3.errors import ProofError, RequestError

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
    seeds: options.Seeds = None,
    tolerance: options.Tolerance = None,
    prompt: options.Text = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Check a claim on a checkpoint and name its theorems; exit 1 where it fails.

    enclose instead says what rounding does to a run: the true error of the logits,
    routes that flip, and whether every module lies in its ball.

    \b
    k3 verify stream --seeds 3
    k3 verify all tests/golden/tiny_release --no-exact
    k3 verify quant tiny --json
    k3 verify enclose tiny -p "Return True if" --dtype bfloat16
    """
    settings.one_of("CLAIM", claim, (*options.CLAIMS, "all", "enclose"))
    refuse(claim, prompt=prompt, exact=exact, seeds=seeds, tolerance=tolerance)
    loading.check(dtype, device, "packed")
    path = loading.find(model)
    from k3.verify import refine

    loaded = loading.load(path, dtype=dtype, device=device, experts="packed")
    setting = refine.Setting(
        model=loaded.model, tokens=tokens, seed=seed, exact=exact, tolerance=tolerance
    )
    setting = setting if seeds is None else replace(setting, seeds=seeds)
    if claim == "enclose":
        return enclose.enclose(loaded, setting.ids, prompt, as_json=json)
    names = options.CLAIMS if claim == "all" else (claim,)
    return claims(names, setting, as_json=json)


def claims(names: Sequence[str], setting: "Setting", *, as_json: bool) -> int:
    """Claims one after another; 1 where one fails or cannot be checked."""
    try:
        found = [run(name, setting, as_json=as_json) for name in names]
    except ProofError as error:
        print(f"not checked: {error}")
        return CHECK_FAILED
    if as_json:
        value = {"ok": all(ok for ok, _ in found), "claims": [v for _, v in found]}
        output.json_value(value)
    return 0 if all(ok for ok, _ in found) else CHECK_FAILED


def refuse(
    claim: str,
    *,
    prompt: str | None,
    exact: bool,
    seeds: int | None,
    tolerance: float | None,
) -> None:
    """An option that the claim would not read is an error."""
    if claim != "enclose" and prompt is not None:
        raise RequestError(
            f"--prompt is for enclose: got it with {claim}, which draws its tokens; "
            "leave it out"
        )
    given = {"--no-exact": not exact, "--seeds": seeds, "--tolerance": tolerance}
    wrong = [name for name, value in given.items() if value not in (None, False)]
    if claim == "enclose" and wrong:
        raise RequestError(
            f"enclose takes no {wrong[0]}: its bounds are computed; leave it out"
        )
    if seeds is not None and not exact:
        raise RequestError(
            "--seeds is for exact arithmetic: got it with --no-exact; leave one out"
        )


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
