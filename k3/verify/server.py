"""An OpenAI-compatible server against a model run here: greedy text and its odds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.model import Model
from k3.model.generate import GenerateOptions, Token, stream

# Log-probabilities of two right servers differ by rounding, more so in bfloat16.
TOLERANCE = 1e-2
SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One prompt: both texts, and the odds of the tokens that both chose.

    `at` is the first token that differs, with what either chose; `margin` is how much
    likelier our choice is there than our second. A token may differ by rounding alone
    where the margin is within the tolerance: that is a near tie, and no fault.
    """

    prompt: str
    ours: str
    tolerance: float
    theirs: str = ""
    tokens: int = 0
    gap: float = 0.0
    at: int | None = None
    choices: tuple[str, str] = ("", "")
    margin: float = 0.0
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Same tokens up to a near tie, and their log-probabilities within bounds."""
        near = self.at is None or self.margin <= self.tolerance
        # NaN is beyond every bound.
        return not self.problem and near and self.gap <= self.tolerance

    def line(self) -> str:
        """Some lines for a person."""
        mark = "ok  " if self.ok else "DIFF"
        if self.problem:
            return f"{mark} {self.prompt!r}: {self.problem}"
        lines = [
            f"{mark} {self.prompt!r}: {self.tokens} tokens alike, log-probabilities "
            f"within {self.gap:.1e} (at most {self.tolerance:.0e})"
        ]
        if self.at is not None:
            ours, theirs = self.choices
            why = "a near tie" if self.margin <= self.tolerance else "not a tie"
            lines.append(
                f"     token {self.at}: ours {ours!r}, theirs {theirs!r}; our choice "
                f"leads by {self.margin:.1e}, {why}"
            )
        return "\n".join(lines)


@dataclass(slots=True)
class ServerReport:
    """All prompts on one server."""

    url: str
    model: str
    answers: list[Answer] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Every answer is right."""
        return all(answer.ok for answer in self.answers)

    def __str__(self) -> str:
        lines = [f"{self.model} at {self.url}"]
        lines += [answer.line() for answer in self.answers]
        return "\n".join([*lines, "agrees" if self.ok else "differs"])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "url": self.url,
            "model": self.model,
            "answers": [asdict(a) | {"ok": a.ok} for a in self.answers],
        }


def compare_server(
    model: Model,
    tokenizer: Tokenizer,
    url: str,
    prompts: Sequence[str],
    *,
    max_tokens: int = 16,
    tolerance: float = TOLERANCE,
) -> ServerReport:
    """Ask a server for greedy completions and hold them against this model's.

    Raises: RequestError for a server that is not there or answers in another form.
    """
    base = url.rstrip("/").removesuffix("/v1") + "/v1"
    name = _served(base)
    report = ServerReport(url, name)
    for prompt in prompts:
        options = GenerateOptions(temperature=0.0, max_tokens=max_tokens, logprobs=2)
        ids = tokenizer.encode(prompt)
        ours = list(stream(model, ids, options, tokenizer=tokenizer))
        body = {
            "model": name,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "logprobs": 1,
        }
        theirs = _post(f"{base}/completions", body)
        report.answers.append(_judge(prompt, ours, theirs, tolerance))
    return report


def _judge(
    prompt: str, ours: Sequence[Token], theirs: Mapping[str, Any], tolerance: float
) -> Answer:
    """The first token that differs, and the odds before it."""
    mine, said = [t for t in ours if t.text], "".join(t.text for t in ours)
    try:
        text, words, logprobs = _completion(theirs)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        problem = f"no completion with log-probabilities came: {error!r}"
        return Answer(prompt=prompt, ours=said, tolerance=tolerance, problem=problem)
    alike = 0
    while alike < min(len(mine), len(words)) and mine[alike].text == words[alike]:
        alike += 1
    pairs = zip(mine[:alike], logprobs, strict=False)
    gaps = [abs(t.logprob - p) for t, p in pairs]
    gap = max((x if x == x else float("inf") for x in gaps), default=0.0)
    if said == text:
        return Answer(
            prompt=prompt,
            ours=said,
            theirs=text,
            tokens=alike,
            gap=gap,
            tolerance=tolerance,
        )
    return Answer(
        prompt=prompt,
        ours=said,
        theirs=text,
        tokens=alike,
        gap=gap,
        tolerance=tolerance,
        at=alike,
        choices=(_word(mine, alike), words[alike] if alike < len(words) else ""),
        margin=_margin(mine[alike]) if alike < len(mine) else float("inf"),
    )


def _completion(theirs: Mapping[str, Any]) -> tuple[str, list[str], list[float]]:
    """Text, its tokens and their log-probabilities. Raises where one is missing."""
    choice = theirs["choices"][0]
    text, odds = str(choice["text"]), choice["logprobs"]
    words = [str(word) for word in odds["tokens"]]
    logprobs = [float(p) for p in odds["token_logprobs"]]
    if len(words) != len(logprobs) or (text and not words):
        raise ValueError(f"{len(logprobs)} log-probabilities of {len(words)} tokens")
    return text, words, logprobs


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _margin(token: Token) -> float:
    """How much likelier a greedy token is than the second."""
    odds = sorted((float(p) for _, p in token.alternatives), reverse=True)
    return odds[0] - odds[1] if len(odds) > 1 else float("inf")


def _served(base: str) -> str:
    """The name of the first model that the server has."""
    listed = _get(f"{base}/models")
    try:
        return str(listed["data"][0]["id"])
    except (KeyError, IndexError, TypeError) as error:
        raise RequestError(
            f"{base}/models must list a model: got {str(listed)[:80]}; give the "
            "address of an OpenAI-compatible server"
        ) from error


def _get(url: str) -> Any:
    return _asked("GET", url, None)


def _post(url: str, body: Mapping[str, Any]) -> Any:
    return _asked("POST", url, dict(body))


def _asked(method: str, url: str, body: dict[str, Any] | None) -> Any:
    try:
        import httpx
    except ImportError as error:
        raise RequestError(
            "comparing with a server needs httpx: it is not installed; install the "
            "extra with pip install 'k3[serve]'"
        ) from error
    try:
        answer = httpx.request(method, url, json=body, timeout=SECONDS)
        answer.raise_for_status()
        return answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise RequestError(
            f"the server must answer {method} {url} with JSON: got {error}; start it, "
            "or correct the address"
        ) from error
