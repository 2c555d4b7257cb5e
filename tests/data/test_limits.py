"""The released size rule, its checks, and preprocessor_config.json."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.data.limits import Chessboard, ImageLimits
from k3.errors import CheckpointError, RequestError

RELEASED = ImageLimits()

# original size, resized, padding, grid, tokens: release.md section 3
SIZES = [
    ((225, 223), (225, 223), (27, 1), (16, 18), 72),
    ((224, 224), (224, 224), (0, 0), (16, 16), 64),
    ((611, 437), (611, 437), (5, 11), (32, 44), 352),
    ((1920, 1080), (1920, 1080), (12, 12), (78, 138), 2691),
    ((3585, 3585), (3585, 3585), (27, 27), (258, 258), 16641),
    ((100_000, 100), (7167, 7), (1, 21), (2, 512), 256),
]


@pytest.mark.parametrize(("size", "resized", "pad", "grid", "tokens"), SIZES)
def test_released_sizes(size, resized, pad, grid, tokens):
    assert RELEASED.resized(*size) == resized
    padded = RELEASED.padded(*resized)
    assert (padded[0] - resized[0], padded[1] - resized[1]) == pad
    assert RELEASED.grid(*size) == grid
    assert RELEASED.num_tokens(*size) == tokens


def test_a_small_patch_limit_shrinks():
    limits = ImageLimits(in_patch_limit=3)
    assert limits.resized(28, 28) == (24, 24)
    assert limits.padded(24, 24) == (28, 28)
    assert limits.num_tokens(28, 28) == 1


@pytest.mark.parametrize(
    ("size", "grid", "tokens"),
    [
        ((448, 449), (34, 32), 272),
        ((449, 448), (32, 34), 272),
        ((28, 28), (2, 2), 1),
        ((29, 28), (2, 4), 2),
        ((1, 1), (2, 2), 1),
    ],
)
def test_report_62_sizes_are_padded_up(size, grid, tokens):
    assert RELEASED.grid(*size) == grid
    assert RELEASED.num_tokens(*size) == tokens


@given(st.integers(1, 200_000), st.integers(1, 200_000))
def test_every_size_stays_within_the_limits(width, height):
    new_width, new_height = RELEASED.resized(width, height)
    assert 1 <= new_width <= min(width, 7168)
    assert 1 <= new_height <= min(height, 7168)
    # The rule counts whole patches of the original, so it may pass the limit by
    # the part of a patch that it left out on each side.
    slack = (1 + 1 / max(1, width // 14)) * (1 + 1 / max(1, height // 14))
    assert (new_width // 14) * (new_height // 14) <= 65536 * slack
    rows, columns = RELEASED.grid(width, height)
    assert rows % 2 == 0
    assert columns % 2 == 0
    assert max(rows, columns) <= 512


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, 3)])
def test_sizes_without_pixels_are_refused(size):
    with pytest.raises(RequestError, match=f"must have pixels: got {size[0]}x"):
        RELEASED.resized(*size)


def _store(directory, **config):
    text = json.dumps({"media_proc_cfg": config, "auto_map": {}})
    (directory / "preprocessor_config.json").write_text(text)


def test_without_a_file_the_released_values_hold(tmp_path):
    assert ImageLimits.load(tmp_path) == RELEASED


def test_the_file_is_read(tmp_path):
    _store(
        tmp_path,
        in_patch_limit=100,
        patch_limit_on_one_side=9,
        patch_size=14,
        merge_kernel_size=2,
        fixed_output_tokens=None,
        image_mean=[0.1, 0.2, 0.3],
        image_std=[1, 1, 1],
        transparent_bg_config={
            "pattern": "chessboard",
            "chessboard_square_size": 4,
            "chessboard_white_value": 250,
            "chessboard_gray_value": 7,
            "chessboard_square_on_top_left": True,
            "stage": "after_resize",
        },
    )
    limits = ImageLimits.load(tmp_path)
    assert limits.in_patch_limit == 100
    assert limits.image_mean == (0.1, 0.2, 0.3)
    assert limits.transparent_bg == Chessboard(square=4, white=250, gray=7)
    assert limits.cell == 28


def test_other_keys_are_named_in_a_warning(tmp_path):
    _store(tmp_path, sample_fps=2.0, in_patch_limit=100)
    with pytest.warns(UserWarning, match="keys are not used: sample_fps"):
        assert ImageLimits.load(tmp_path).in_patch_limit == 100


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"fixed_output_tokens": 64}, "fixed_output_tokens must be null"),
        ({"patch_size": 0}, "patch_size must be a positive integer: got 0"),
        ({"in_patch_limit": 2.5}, "in_patch_limit must be a positive integer: got 2.5"),
        ({"image_mean": [0.5]}, "one value per colour"),
        ({"image_std": [1, 0, 1]}, "image_std must be positive"),
        ({"transparent_bg_config": {"pattern": "black"}}, "chessboard: got 'black'"),
        ({"transparent_bg_config": {"stage": "before_resize"}}, "filled after_resize"),
        ({"transparent_bg_config": {"chessboard_square_size": 0}}, "squares of a pixe"),
        ({"transparent_bg_config": {"chessboard_gray_value": "7"}}, "must be int: got"),
    ],
)
def test_values_that_are_not_supported_are_refused(tmp_path, config, said):
    _store(tmp_path, **config)
    with pytest.raises(CheckpointError, match=said):
        ImageLimits.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"media_proc_cfg": 3}'])
def test_a_garbled_file_is_refused(tmp_path, text):
    (tmp_path / "preprocessor_config.json").write_text(text)
    with pytest.raises(CheckpointError, match="JSON with an object media_proc_cfg"):
        ImageLimits.load(tmp_path)
