"""`k3 verify enclose`: what rounding does to a run of a checkpoint."""

from collections.abc import Sequence

from k3.cli import loading, output
from k3.errors import RequestError

CHECK_FAILED = 1


def enclose(
    loaded: loading.Loaded, drawn: Sequence[int], text: str | None, *, as_json: bool
) -> int:
    """Enclose a run on a text, or on drawn tokens; exit 1 where a module is outside.

    A flipped route is printed and is no failure.
    """
    ids = list(drawn) if text is None else loaded.encode(text)
    if not ids:
        raise RequestError("enclose needs a text of a token or more: got none")
    from k3.verify import enclose as engine

    report = engine.run(loaded.model, ids)
    if as_json:
        output.json_value(report.to_dict())
    else:
        print("\n".join(engine.lines(report)))
    return 0 if report else CHECK_FAILED
