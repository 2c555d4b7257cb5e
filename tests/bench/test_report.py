"""A comparison is decided by its factor, and only between runs of the same settings."""

import pytest

from k3.bench import Figure, Report, compare
from k3.errors import RequestError


def report(speed=100.0, seconds=1.0, names=("decode", "first"), **settings):
    def figure(name, unit, value):
        return Figure(
            name=name, unit=unit, median=value, low=value, high=value, floor=2 * value
        )

    rows = figure(names[0], "tok/s", speed), figure(names[1], "s", seconds)
    return Report(settings=settings, context={}, figures=rows)


def test_speeds_go_up_and_times_go_down():
    found = compare(report(speed=150, seconds=2), report(), factor=1.5)
    assert found.ratios == {"decode": 1.5, "first": 0.5}
    assert found.slower == ["first"]
    assert not found.ok
    assert [found.verdict(name) for name in found.ratios] == ["better", "SLOWER"]


@pytest.mark.parametrize(
    ("speed", "word"), [(99, "same"), (90, "within the factor"), (110, "better")]
)
def test_what_is_within_the_factor_is_no_failure(speed, word):
    found = compare(report(speed=speed), report(), factor=1.2)
    assert found.ok
    assert found.verdict("decode") == word


def test_a_share_is_1_at_the_floor_and_less_beyond_it():
    rate, seconds = report().figures
    assert rate.share == 0.5
    assert seconds.share == 2.0


def test_a_saved_run_is_read_back(tmp_path):
    made = report(threads=1)
    made.save(tmp_path / "run.json")
    assert Report.load(tmp_path / "run.json") == made


def test_other_settings_are_refused():
    with pytest.raises(RequestError, match="same settings: got threads 1 and 2"):
        compare(report(threads=1), report(threads=2), factor=1.2)


def test_runs_without_a_common_figure_are_refused():
    other = report(names=("a", "b"))
    with pytest.raises(RequestError, match="figures that both have: got none"):
        compare(report(), other, factor=1.2)


def test_no_number_is_no_factor():
    with pytest.raises(RequestError, match="got nan; give 1 or more"):
        compare(report(), report(), factor=float("nan"))


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "run.json"
    report().save(path)
    path.write_text(path.read_text().replace("k3 bench 1", "k3 bench 9"))
    with pytest.raises(RequestError, match=r"is none \(ValueError: k3 bench 9\)"):
        Report.load(path)
