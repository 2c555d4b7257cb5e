"""What a call refuses, with its sentence: ids, states, features, grids, options."""

import copy

import pytest
import torch
from small import MEDIA, config, ids, model

from k3.errors import K3Error, RequestError, ShapeError
from k3.model import DecodeState, Model

KEEP = 4
# A user gets the sentences; the shape checks of the tests would come first.
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(torch.float32, config(vision={}))


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def state(net):
    with torch.no_grad():
        return net(ids(2, 9), state=net.init_state(2, KEEP))[1]


def first(packed, suffix):
    return next(name for name in packed if name.endswith(suffix))


def changed(suffix, how):
    def change(packed):
        name = first(packed, suffix)
        packed[name] = how(packed[name])

    return change


def dropped(packed):
    for name in list(packed):
        if name.startswith("layers.0.") and ("base" in name or "kept" in name):
            del packed[name]


def swapped(packed):
    for name in list(packed):
        if name.startswith("layers.0."):
            packed["layers.x." + name.removeprefix("layers.0.")] = packed.pop(name)
    packed["layers.0.rows"] = packed.pop("layers.3.rows")
    for name in list(packed):
        if name.startswith("layers.x."):
            packed["layers.3." + name.removeprefix("layers.x.")] = packed.pop(name)


PASSED_ON = [
    *[
        (changed(end, how), f"{end.lstrip('.')} {rule}")
        for end in (".state", ".base_state")
        for how, rule in (
            (lambda x: x[:, :1], r"of sizes \(2, 5, 20, 12\): got \(2, 1, 20, 12\)"),
            (lambda x: x[..., :1], "of sizes"),
            (lambda x: x.mT, r"of sizes .* got \(2, 5, 12, 20\)"),
            (lambda x: x.long(), "in torch.float32 on cpu: got torch.int64 on cpu"),
            (lambda x: x.bfloat16(), "in torch.float32 .* got torch.bfloat16"),
            (lambda x: x.double(), "in torch.float32 .* got torch.float64"),
            (
                lambda x: x.to("meta"),
                "in torch.float32 on cpu: got torch.float32 on meta",
            ),
        )
    ],
    (changed(".window", lambda x: torch.cat([x, x], 1)), "window of sizes"),
    (changed(".window", lambda x: x[:, 1:]), "window of sizes"),
    (changed(".window", lambda x: x[..., :1]), "window of sizes"),
    (changed(".rows", lambda x: x[..., :1]), "rows of sizes"),
    (changed(".rows", lambda x: x.double()), "rows in torch.float32"),
    *[
        (changed(f".kept_{n}", lambda x: x[..., :1]), f"kept_{n} of sizes")
        for n in ("raw", "k", "v", "g", "beta")
    ],
    (changed(".kept_g", lambda x: x.long()), "kept_g in torch.float32"),
    (swapped, "layer 0 needs a KDA memory: got MLACache"),
]


@pytest.mark.parametrize(("damage", "sentence"), PASSED_ON)
def test_tensors_that_are_not_the_models_are_refused(net, state, damage, sentence):
    packed = state.pack()
    net.step(ids(2, 1), DecodeState.unpack(packed))
    damage(packed)
    wrong = DecodeState.unpack(packed)
    with pytest.raises(ShapeError, match=rf"as the model's init_state .*{sentence}"):
        net.step(ids(2, 1), wrong)
    assert not wrong.spent


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda p: p.update({"layers.00.state": p["layers.0.state"]}),
            "named layers.N",
        ),
        (lambda p: p.update({"layers.\u0660.state": p["header"]}), "named layers.N"),
        (lambda p: p.update({"layers.0.state\n": p["header"]}), "named layers.N"),
        (lambda p: p.update({5: p["header"]}), "names and tensors: got 5"),
        (lambda p: p.update({"layers.3.rows": [1]}), "'layers.3.rows': a list"),
        (lambda p: p["header"].__setitem__(0, -4), r"keep_inputs -4, \(4, 4\) kept"),
        (lambda p: p["header"].__setitem__(0, 2), r"keep_inputs 2, \(4, 4\) kept"),
        (lambda p: p["header"].__setitem__(-1, -1), r"keep_inputs 4, \(4, -1\) kept"),
        (lambda p: p["header"][2:4].fill_(2), r"\(4, 4\) kept, lengths \(2, 2\)"),
        (lambda p: p.update(header=p["header"].bool()), "2 integers and 2 a"),
        (lambda p: p.update(header=p["header"].to("meta")), "2 integers and 2 a"),
        (lambda p: p.update({"layers.0.window": torch.zeros(2)}), "window of sizes"),
        (dropped, "has the inputs of 4 kept tokens"),
    ],
)
def test_keys_and_header_are_read_strictly(state, damage, sentence):
    packed = state.pack()
    damage(packed)
    with pytest.raises(ShapeError, match=sentence):
        DecodeState.unpack(packed)


@pytest.mark.parametrize("what", [None, [1], "x", torch.zeros(3)])
def test_what_is_no_dict_is_no_packed_state(what):
    with pytest.raises(ShapeError, match=r"is a dict of tensors: got a \w+"):
        DecodeState.unpack(what)


def test_a_state_of_equal_shapes_from_other_weights_is_refused(net, state):
    other = model(torch.float32, config(vision={}))
    with pytest.raises(RequestError, match="belongs to the weights that made it"):
        other.step(ids(2, 1), state.fork())
    same = copy.deepcopy(net)
    assert same.weight_version == net.weight_version
    same.step(ids(2, 1), state.fork())
    for change in (
        lambda: same.load_state_dict(other.state_dict()),
        lambda: same.init_weights(3),
    ):
        before = same.init_state(2)
        change()
        with pytest.raises(RequestError, match="belongs to the weights"):
            same.step(ids(2, 1), before)
    other.weight_version = net.weight_version
    other.step(ids(2, 1), state.fork())


def test_a_state_of_another_dtype_is_refused(net, state):
    other = model(torch.float64, config(vision={}))
    other.weight_version = net.weight_version
    with pytest.raises(ShapeError, match=r"in torch.float64 on cpu: got torch.float32"):
        other.step(ids(2, 1), state.fork())


def test_what_is_no_state_is_refused(net, state):
    with pytest.raises(RequestError, match="must be a DecodeState: got a dict"):
        net(ids(2, 1), state=state.pack())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_state_is_a_fork(net, state, copied):
    mine = state.fork()
    other = copied(mine)
    want, _ = net.step(ids(2, 1), mine)
    net.step(ids(2, 1, seed=9), other)
    with pytest.raises(RequestError, match="spent"):
        copied(mine)
    assert torch.equal(net.step(ids(2, 1), state.fork())[0], want)


@pytest.mark.parametrize("n", [1.0, 1.5, True, "1", None, torch.tensor(1.0)])
def test_counts_are_whole_numbers(net, state, n):
    with pytest.raises(
        ShapeError, match=r"whole number of tokens: got .*; give an int"
    ):
        state.fork().rewind(n)
    with pytest.raises(ShapeError, match="whole number of sequences: got"):
        net.init_state(n)
    with pytest.raises(ShapeError, match="keep_inputs is a whole number"):
        net.init_state(1, n)


@pytest.mark.parametrize(
    ("came", "sentence"),
    [
        (None, "int32 tensor .* got a NoneType"),
        ([[1, 2]], "int32 tensor .* got a list"),
        (torch.zeros(1, 2), "must be int64 or int32: got torch.float32"),
        (torch.full((1, 2), torch.nan), "must be int64 or int32"),
        (torch.zeros(1, 2, dtype=torch.bool), "got torch.bool"),
        (torch.zeros(1, 2, dtype=torch.uint8), "got torch.uint8"),
        (torch.zeros(2, dtype=torch.int64), r"ids are \[B T\]: got \(2,\)"),
        (torch.zeros(1, 1, 2, dtype=torch.int64), r"ids are \[B T\]"),
        (torch.zeros(1, 2, dtype=torch.int64, device="meta"), "on cpu: got meta"),
    ],
)
def test_ids_of_another_kind_are_refused(net, came, sentence):
    with pytest.raises(ShapeError, match=sentence):
        net(came)


def test_int32_ids_are_the_same_ids(net):
    assert torch.equal(net(ids(2, 5).int()), net(ids(2, 5)))
    placed = torch.tensor([[MEDIA, 3]])
    rows = torch.ones(1, 26)
    assert torch.equal(net(placed.int(), features=rows), net(placed, features=rows))


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (torch.zeros(26), r"features are \[rows 26\]: got \(26,\)"),
        (torch.zeros(1, 26, 1), r"features are \[rows 26\]: got \(1, 26, 1\)"),
        ([[0.0] * 26], "got list"),
        (torch.zeros(1, 26).long(), "features are floating point .* got torch.int64"),
        (torch.zeros(1, 26, device="meta"), "on cpu: got torch.float32 on meta"),
    ],
)
def test_features_of_another_kind_are_refused(net, features, sentence):
    with pytest.raises(ShapeError, match=sentence):
        net(torch.tensor([[MEDIA, 3]]), features=features)


@pytest.mark.parametrize(
    "grids",
    [
        torch.tensor([1, 2, 2]),
        torch.tensor([[2, 2]]),
        torch.tensor([[1.0, 2.0, 2.0]]),
        [[1, 2, 2]],
        (1, 2, 2),
        None,
        torch.tensor(4),
    ],
)
def test_grids_of_another_kind_are_refused(net, grids):
    with pytest.raises(ShapeError, match=r"grids are an int64 tensor \[n 3\]"):
        net.encode_images(torch.zeros(4, 3, 14, 14), grids)


def test_pixels_of_another_kind_are_refused(net):
    grid = torch.tensor([[1, 2, 2]])
    for pixels in (torch.zeros(4, 3, 14, 14).byte(), None, [0]):
        with pytest.raises(ShapeError, match="are a floating-point tensor: got"):
            net.encode_images(pixels, grid)


def test_a_model_made_in_inference_mode_trains(net):
    with torch.inference_mode():
        made = Model(net.config, dtype=torch.float32).init_weights(2)
    with torch.enable_grad():
        made(ids(1, 4)).sum().backward()
    assert made.language_model.lm_head.weight.grad is not None


def test_a_state_is_checked_under_autocast_too(net):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, state = net(ids(1, 5), state=net.init_state(1, 2))
        _, state = net(ids(1, 1), state=state)
        _, state = net(ids(1, 1), state=state.rewind(1))
    assert state.lens == (6,)
    assert issubclass(ShapeError, K3Error)
