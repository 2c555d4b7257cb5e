"""`k3 read`: what it writes, checks and refuses."""

import json

import pytest

from k3.cli import main
from k3.reader import check


def test_build_writes_pages(tmp_path, capsys):
    assert main(["read", "--build", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert str(tmp_path / "index.html") in found["pages"]
    assert (tmp_path / "static" / "reader.css").is_file()


@pytest.mark.parametrize("problems", [[], ["x.md: wrong"]])
def test_check_ends_with_its_verdict(problems, monkeypatch, capsys):
    monkeypatch.setattr(check, "problems", lambda: problems)
    assert main(["read", "--check"]) == (1 if problems else 0)
    assert capsys.readouterr().out == (
        "x.md: wrong\n" if problems else "every claim has its names and its evidence\n"
    )
    assert main(["read", "--check", "--json"]) == (1 if problems else 0)
    assert json.loads(capsys.readouterr().out) == {
        "ok": not problems,
        "problems": problems,
    }


def test_one_thing_at_a_time(tmp_path, capsys):
    assert main(["read", "--check", "--build", str(tmp_path)]) == 2
    assert "--build and --check: got both" in capsys.readouterr().err
