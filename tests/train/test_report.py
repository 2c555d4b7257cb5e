"""One line a record, the same in the file and on the screen."""

import json

import pytest

from k3.train import report

RECORD = {
    "step": 120,
    "steps": 300,
    "loss": 3.414,
    "ema": 3.52,
    "tokens_per_second": 4100.0,
    "learning_rate": 2.9e-4,
    "gradient_norm": 0.8,
    "expert_max_over_mean": 1.12,
    "seconds": 34.0,
}
LINE = (
    "step 120/300 loss 3.41 (ema 3.52) tok/s 4.1k lr 2.9e-04 gnorm 0.80 "
    "expert-max/mean 1.12 eta 0:51"
)


def test_line():
    assert report.line(RECORD) == LINE


def test_lines_go_to_stderr_and_records_to_the_file(tmp_path, capsys):
    with report.reporter(tmp_path, quiet=False) as tell:
        tell(RECORD)
    with report.reporter(tmp_path, quiet=False) as tell:
        tell(RECORD | {"step": 140})
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == LINE
    lines = (tmp_path / report.FILE_NAME).read_text().splitlines()
    assert [json.loads(text)["step"] for text in lines] == [120, 140]


def test_quiet_says_nothing(tmp_path, capsys):
    with report.reporter(tmp_path, quiet=True) as tell:
        tell(RECORD)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with report.reporter(tmp_path, quiet=False) as tell:
        tell(RECORD)
    assert "step 120/300" in capsys.readouterr().err


@pytest.mark.parametrize(("step", "kept"), [(0, 0), (20, 1), (39, 1), (40, 2)])
def test_records_past_a_resumed_step_go(tmp_path, step, kept):
    path = tmp_path / report.FILE_NAME
    path.write_text('{"step": 20}\n{"step": 40}\n')
    report.keep_until(path, step)
    assert len(path.read_text().splitlines()) == kept


def test_a_stage_that_is_stopped_says_so_and_ends_its_line(capsys):
    with (
        pytest.raises(KeyboardInterrupt),
        report.stage("scoring held-out text", quiet=False),
    ):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "scoring held-out text ... stopped\n"


def test_a_quiet_stage_says_nothing(capsys):
    with report.stage("reading text", quiet=True):
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "torn",
    [b'{"step": 30, "lo', b"{", b"\xff", b"3", b"{}", b'{"step": null}', b"[" * 9**5],
    ids=["cut", "brace", "bytes", "number", "empty", "null", "deep"],
)
def test_a_torn_last_record_goes(tmp_path, torn):
    path = tmp_path / report.FILE_NAME
    path.write_bytes(b'{"step": 20}\n' + torn)
    report.keep_until(path, 40)
    assert path.read_bytes() == b'{"step": 20}\n'
    assert [file.name for file in tmp_path.iterdir()] == [report.FILE_NAME]
