"""`k3 serve --replicas` and `--simulate`."""

import json

from k3.cli import fleet
from k3.serve import replicas, simulate

ASKED = {
    "model": "tiny",
    "host": "127.0.0.1",
    "port": 8000,
    "served_model_name": ["a", "b"],
    "api_key": ["x", "y"],
    "max_model_len": 0,
    "enable_prefix_caching": False,
    "speculative_config": "",
    "drain_seconds": 5.0,
    "replicas": 2,
    "simulate": False,
    "settings": ["max_n=2"],
    "json": False,
}


def test_a_replica_gets_the_options_but_not_the_keys():
    assert fleet.arguments(ASKED) == [
        *("tiny", "--served-model-name", "a", "--served-model-name", "b"),
        *("--max-model-len", "0", "--no-enable-prefix-caching"),
        *("--drain-seconds", "5.0", "--set", "max_n=2"),
    ]


def test_replicas_run_behind_a_router(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(replicas, "serve", lambda *a, **k: seen.append((a, k)))
    monkeypatch.setenv("K3_API_KEY", "")
    assert fleet.takes({**ASKED, "json": True})
    ((arguments, count), options) = seen[0]
    assert (arguments, count) == (fleet.arguments(ASKED), 2)
    assert options["api_keys"] == ("x", "y")
    assert options["stop_seconds"] == 5.0
    assert json.loads(capsys.readouterr().out)["url"] == "http://127.0.0.1:8000"
    assert not fleet.takes({**ASKED, "replicas": 0})


def test_a_simulation_prints_numbers_or_a_picture(monkeypatch, capsys):
    done = [simulate.Done("short", 0.3, 2.0, 100, 50, 0, 1)]
    monkeypatch.setattr(simulate, "simulate", lambda plan, config: {"all": done})
    assert fleet.takes({**ASKED, "simulate": True, "json": True})
    found = json.loads(capsys.readouterr().out)
    assert found["policies"]["all"]["short"]["first"]["p50"] == 0.3
    assert found["plan"]["replicas"] == 2
    assert fleet.takes({**ASKED, "simulate": True, "replicas": 0})
    assert "short" in capsys.readouterr().out
