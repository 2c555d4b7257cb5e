"""Every number of a run is in one of its pictures."""

import json

from k3.train import curves, report

RECORDS = [
    {"step": 1, "ema": 7.0, "loss": 7.0, "gradient_norm": 2.0, "learning_rate": 0.1,
     "expert_max_over_mean": 1.5, "losses": {"text": 7.0}},
    {"step": 2, "skipped": "not finite", "ema": 7.0, "loss": None,
     "gradient_norm": None, "learning_rate": 0.1, "expert_max_over_mean": 1.5,
     "losses": {}},
    {"step": 3, "skipped": "nothing", "ema": 7.0},
    {"step": 4, "ema": 6.5, "loss": 5.0, "gradient_norm": 1.0, "learning_rate": 0.2,
     "expert_max_over_mean": 1.25, "losses": {"text": 5.0, "digits <8>": 4.0}},
]  # fmt: skip


def test_pictures_of_a_run(tmp_path):
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    (tmp_path / report.FILE_NAME).write_text(lines)
    paths = curves.draw(tmp_path)
    names = ["loss", "gradient_norm", "learning_rate", "expert_max_over_mean"]
    assert [path.name for path in paths] == [f"{name}.svg" for name in names]
    loss = paths[0].read_text()
    for name in ("all, smoothed", "text", "digits &lt;8&gt;"):
        assert f">{name}</text>" in loss
    assert "largest expert load over the mean" in paths[3].read_text()
    assert curves.draw(tmp_path) == paths


def test_a_run_without_records_has_empty_pictures(tmp_path):
    (tmp_path / report.FILE_NAME).touch()
    assert all("<svg" in path.read_text() for path in curves.draw(tmp_path))
