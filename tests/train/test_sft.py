"""Fine-tuning learns the answers, and only those; an adapter leaves the base alone."""

import json

import pytest
import torch
import toy
from safetensors.torch import load_file

from k3.checkpoint import load
from k3.checkpoint.save import save
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError, RequestError
from k3.model import Model
from k3.train import adapter_files, lora, sft

STEPS = {
    "steps": 4,
    "tokens": 400,
    "batch": 2,
    "learning_rate": 0.01,
    "log_steps": 2,
    "workers": 1,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A random checkpoint of 556 tokens: bytes, 44 pairs and the special places."""
    folder = tmp_path_factory.mktemp("base")
    pairs = [bytes([97 + n % 26, 97 + n // 26]) for n in range(44)]
    ranks = {
        token: i for i, token in enumerate([bytes([b]) for b in range(256)] + pairs)
    }
    Tokenizer(ranks).save(folder)
    model = Model(toy.config(), dtype=torch.float32).init_weights(3)
    save(model, folder, experts="packed")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "talks.jsonl"
    lines = []
    for n in range(6):
        talk = [
            {"role": "user", "content": f"Say {n}"},
            {"role": "assistant", "content": f"It is {n}."},
        ]
        effort = "low" if n % 2 else "max"
        lines.append(json.dumps({"messages": talk, "thinking_effort": effort}))
    path.write_text("\n".join(lines))
    return path


def test_whole_weights_learn_the_answers(base, data, tmp_path, unchecked):
    found = sft.run(base, data, tmp_path / "o", settings=STEPS, quiet=True)
    assert found.loss_after < 0.95 * found.loss_before
    assert found.conversations + found.heldout == 6
    load.load(tmp_path / "o")
    Tokenizer.load(tmp_path / "o")
    lines = (tmp_path / "o" / "metrics.jsonl").read_text().splitlines()
    assert {*json.loads(lines[-1])["losses"]} <= {"sft:low", "sft:max"}


def stored(folder):
    return {
        name: tensor
        for path in folder.glob("model*.safetensors")
        for name, tensor in load_file(path).items()
    }


def test_an_adapter_alone_moves_and_a_run_goes_on(base, data, tmp_path, unchecked):
    adapter = lora.Options(targets=("q_b_proj", "up_proj"), rank=2)
    whole = sft.run(
        base, data, tmp_path / "a", settings=STEPS, adapter=adapter, quiet=True
    )
    assert whole.loss_after < whole.loss_before
    assert whole.trained < 20_000
    before, after = stored(base), stored(tmp_path / "a" / sft.MERGED)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(name.endswith(("q_b_proj.weight", "up_proj.weight")) for name in moved)
    model = load.load(base, dtype=torch.float32)
    assert adapter_files.load(model, tmp_path / "a")
    half = STEPS | {"steps": 2}
    sft.run(base, data, tmp_path / "b", settings=half, adapter=adapter, quiet=True)
    with pytest.raises(RequestError, match="choose another one, or resume"):
        sft.run(base, data, tmp_path / "b", settings=STEPS, adapter=adapter, quiet=True)
    again = {"settings": STEPS, "resume": True, "quiet": True}
    on = sft.run(base, data, tmp_path / "b", adapter=adapter, **again)
    assert on.steps == STEPS["steps"]
    other = lora.Options(targets=("q_b_proj",), rank=2)
    with pytest.raises(CheckpointError, match="other adapter"):
        sft.run(base, data, tmp_path / "b", adapter=other, **again)


def test_a_conversation_longer_than_a_row_is_refused_at_once(base, data, tmp_path):
    with pytest.raises(RequestError, match="of 100; raise tokens"):
        sft.run(base, data, tmp_path / "o", settings={"tokens": "100"}, quiet=True)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "values", [{"optimizer": "muon"}, {"balance": "sign"}, {"qk_clip": "100"}]
)
def test_what_would_move_the_base_is_refused(base, data, tmp_path, values):
    with pytest.raises(RequestError, match="with an adapter, which alone moves"):
        sft.run(
            *(base, data, tmp_path / "o"),
            settings=values,
            adapter=lora.Options(),
            quiet=True,
        )
