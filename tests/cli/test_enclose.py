"""k3 verify enclose: a run on a text or on drawn tokens, and what it refuses."""

import pytest

from k3.verify import enclose


@pytest.fixture
def ran(monkeypatch):
    """What the engine was asked, which itself is tested in tests/verify/enclose."""
    asked = []

    def run(model, tokens):
        asked.append((model, tokens))
        error = 0.5 if len(tokens) < 20 else float("inf")
        return enclose.Report(
            dtype="float32",
            tokens=len(tokens),
            error=error,
            scale=2.0,
            error_on_route=0.25,
            radius=1e-40,
            bits=384,
            flips=[enclose.Flip(layer=1, token=0, run=(2,), spec=(3,), margin=-1e-3)],
        )

    monkeypatch.setattr(enclose, "run", run)
    return asked


def test_a_text_is_run_and_a_flipped_route_is_no_failure(k3, checkpoint, ran):
    found = k3("verify", "enclose", checkpoint, "-p", "ab")
    assert found.code == 0
    assert found.out.startswith("enclose: INSIDE, 1 route flipped (float32, 2 tokens")
    assert "layer 1, token 0: the run took experts 2, the equation 3" in found.out
    assert "true error on the run's own route: 2.50e-01" in found.out
    assert ran[0][1] == [97, 98]


def test_drawn_tokens_as_json(k3, checkpoint, ran):
    found = k3("verify", "enclose", checkpoint, "--tokens", "8", "--json")
    assert found.code == 0
    assert found.json["verdict"] == "INSIDE, 1 route flipped"
    assert found.json["tokens"] == 8
    assert found.json["flips"][0]["spec"] == [3]
    again = k3("verify", "enclose", checkpoint, "--tokens", "8", "--seed", "1")
    assert again.code == 0
    assert ran[0][1] != ran[1][1]


def test_what_lies_outside_is_a_failure(k3, checkpoint, ran):
    found = k3("verify", "enclose", checkpoint, "--tokens", "20", "--json")
    assert found.code == 1
    assert found.json["verdict"] == "OUTSIDE"
    assert found.json["error"] == "inf"


@pytest.mark.slow
def test_a_checkpoint_is_enclosed(k3, checkpoint):
    words = ("--tokens", "8", "--dtype", "bfloat16")
    found = k3("verify", "enclose", checkpoint, *words)
    assert found.code == 0
    assert found.out.startswith("enclose: INSIDE")
    assert "(bfloat16, 8 tokens, " in found.out
    assert "assumed: library functions" in found.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("enclose", "-p", ""), "enclose needs a text of a token or more"),
        (("enclose", "--no-exact"), "enclose takes no --no-exact"),
        (("enclose", "--tolerance", "0.1"), "enclose takes no --tolerance"),
        (("stream", "-p", "ab"), "--prompt is for enclose: got it with stream"),
    ],
)
def test_what_it_would_not_read_is_refused(k3, checkpoint, words, why):
    claim, *rest = words
    found = k3("verify", claim, checkpoint, *rest)
    assert found.code == 2
    assert why in found.err
