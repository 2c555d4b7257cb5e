"""`k3 prove`: the theorems, each proved anew when asked for."""

import time
from typing import TYPE_CHECKING

from k3.cli import options, output, theorems
from k3.errors import ProofError, RequestError

if TYPE_CHECKING:
    from k3.proof import Record

CHECK_FAILED = 1


def prove(
    name: options.Theorem = "",
    *,
    everything: options.Everything = False,
    explain: options.Explain = False,
    article: options.Article = False,
    seed: options.SolverSeed = 0,
    check_log: options.CheckLog = False,
    empty_cache: options.EmptyCache = False,
    json: options.Json = False,
) -> int:
    """List the theorems, prove one or all, or map those of the article.

    \b
    k3 prove
    k3 prove situ.output_bound --explain
    k3 prove --all --empty-cache --check-log
    """
    if sum(map(bool, (name, everything, article))) > 1:
        raise RequestError(
            "prove takes one of NAME, --all and --article: got more; choose one"
        )
    if article:
        return theorems.show_article(as_json=json)
    if not name and not everything:
        return theorems.show_list(as_json=json)
    # The two solvers, or one line with the command that installs them.
    theorems.needed_solvers()
    try:
        if name:
            return prove_one(name, explain=explain, as_json=json)
        cache = None if empty_cache else theorems.cache_file()
        return prove_all(seed, cache=cache, check_log=check_log, as_json=json)
    except ProofError as error:
        print(f"not proved: {error}")
        return CHECK_FAILED


def prove_one(name: str, *, explain: bool, as_json: bool) -> int:
    """Prove one theorem and print what is known of it."""
    record, more = theorems.proved(theorems.known(name), explain=explain)
    if as_json:
        output.json_value(theorems.plain(record) | more)
    else:
        theorems.show_record(record)
        theorems.show_explanation(more)
    return 0


def prove_all(
    seed: int, *, cache: theorems.Cache, check_log: bool, as_json: bool
) -> int:
    """Prove everything with a line for each, then the counts and what failed."""
    from k3 import proof
    from k3.proof import graphs

    began = time.perf_counter()

    def progress(record: "Record") -> None:
        if not as_json:
            print(theorems.line(record), flush=True)

    failures: dict[str, str] = {}
    records = proof.prove_all(
        seed=seed,
        cache=cache,
        check_log=check_log,
        progress=progress,
        failures=failures,
    )
    for name in graphs.names():
        try:
            records.append(graphs.prove(name))
        except ProofError as error:
            failures[name] = str(error)
        else:
            progress(records[-1])
    run = theorems.Run(
        seed=seed, log_checked=check_log, seconds=time.perf_counter() - began
    )
    theorems.show_all(records, failures, run, as_json=as_json)
    return CHECK_FAILED if failures else 0
