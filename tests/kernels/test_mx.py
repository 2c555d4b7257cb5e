"""MXFP4: codes and scales against ml_dtypes, the encoder's rules, refusals."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import ShapeError
from k3.kernels import mx

DTYPES = [torch.bfloat16, torch.float32, torch.float64]
CODES = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def oracle(packed: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Decode with ml_dtypes alone, in float64."""
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    codes = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    factors = scale.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    return codes * np.repeat(factors, 32, -1)


def random_mx(rows: tuple[int, ...], groups: int, seed: int, low=0, high=256):
    generator = torch.Generator().manual_seed(seed)
    packed = torch.randint(
        0, 256, (*rows, 16 * groups), dtype=torch.uint8, generator=generator
    )
    scale = torch.randint(
        low, high, (*rows, groups), dtype=torch.uint8, generator=generator
    )
    return packed, scale


def same_bits(got: torch.Tensor, want: torch.Tensor) -> bool:
    nan = got.isnan() & want.isnan()
    sign = torch.signbit(got) == torch.signbit(want)
    return bool(((got == want) & sign | nan).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "groups"), [((1,), 1), ((63,), 7), ((3, 5), 2)])
def test_decode_matches_ml_dtypes(dtype, rows, groups):
    packed, scale = random_mx(rows, groups, seed=7)
    scale.view(-1)[0] = 255
    want = torch.from_numpy(oracle(packed.numpy(), scale.numpy())).to(dtype)
    assert same_bits(mx.decode(packed, scale, dtype), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_decode_every_byte_with_every_scale(dtype):
    packed = torch.arange(256, dtype=torch.uint8).repeat(256, 1)
    scale = torch.arange(256, dtype=torch.uint8).view(-1, 1).repeat(1, 16)
    want = torch.from_numpy(oracle(packed.numpy(), scale.numpy())).to(dtype)
    assert same_bits(mx.decode(packed, scale, dtype), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_decode_empty_and_strided(dtype):
    packed, scale = random_mx((0,), 3, seed=1)
    assert mx.decode(packed, scale, dtype).shape == (0, 96)
    packed, scale = random_mx((5, 4), 3, seed=2, high=255)
    want = mx.decode(packed, scale, dtype)
    got = mx.decode(packed.transpose(0, 1), scale.transpose(0, 1), dtype)
    assert torch.equal(got, want.transpose(0, 1))


def test_decode_fills_a_poisoned_buffer():
    packed, scale = random_mx((9,), 2, seed=3, high=255)
    out = torch.full((9, 64), torch.nan)
    got = mx.decode(packed, scale, torch.float32, out=out)
    assert got.data_ptr() == out.data_ptr()
    assert torch.equal(out, mx.decode(packed, scale, torch.float32))
    with pytest.raises(ShapeError, match="out must be contiguous"):
        mx.decode(packed, scale, torch.float32, out=out.double())


def test_report_19_scale_is_not_one_binade_small():
    for amax, byte, decoded in [(2.7, 126, 3.0), (5.5, 127, 6.0), (1.2, 125, 1.0)]:
        x = torch.zeros(1, 32)
        x[0, 5] = amax
        packed, scale = mx.encode(x)
        assert scale.item() == byte
        assert mx.decode(packed, scale, torch.float32)[0, 5] == decoded


def test_report_19_saturation_is_chosen_by_the_rule():
    x = torch.zeros(1, 32)
    x[0, 0] = 7.9
    # The released rule rounds 7.9 up, so neither rule breaks |x| <= 6s here ...
    for rule in mx.RULES:
        assert mx.encode(x, rule)[1].item() == 128
    # ... but below 7 the floor rule saturates, and only "ceil" keeps the premise.
    x[0, 0] = -6.9
    packed, scale = mx.encode(x, "floor")
    assert scale.item() == 127
    assert mx.decode(packed, scale, torch.float32)[0, 0] == -6
    assert mx.encode(x, "ceil")[1].item() == 128


@pytest.mark.parametrize(
    ("amax", "byte"), [(1.0, 125), (1.7499, 125), (1.75, 126), (3.5, 127), (7.0, 128)]
)
def test_floor_rule_is_the_released_encoder(amax, byte):
    assert mx.encode(torch.full((1, 32), amax))[1].item() == byte
    assert mx.encode(torch.full((1, 32), amax).double())[1].item() == byte


def test_ties_go_to_the_even_code():
    ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
    even = [0, 1, 1, 2, 2, 4, 4]
    for dtype in DTYPES:
        x = torch.zeros(1, 32, dtype=dtype)
        x[0, :7], x[0, 7:14], x[0, 31] = torch.tensor(ties), -torch.tensor(ties), 6
        got = mx.decode(*mx.encode(x), torch.float64)[0]
        assert got[:7].tolist() == even
        assert got[7:14].tolist() == [-value for value in even]


def test_encode_matches_ml_dtypes_rounding():
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(101, 64, generator=generator).double()
    packed, scale = mx.encode(x)
    factors = scale.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    scaled = np.clip(x.numpy() / np.repeat(factors, 32, -1), -6, 6)
    want = scaled.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    got = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).numpy()
    assert (got == want).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31), st.integers(-140, 120), st.sampled_from(["floor", "ceil"])
)
def test_packing_decoded_values_loses_nothing(seed, exponent, rule):
    low = max(0, exponent + 127)
    packed, scale = random_mx((3,), 4, seed, low=low, high=min(253, low + 9))
    x = mx.decode(packed, scale, torch.float32)
    assert torch.equal(mx.decode(*mx.encode(x, rule), torch.float32), x)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.floats(-120, 120))
def test_ceil_never_saturates_and_is_least(seed, log2):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 96, generator=generator).double() * 2.0**log2
    _, scale = mx.encode(x, "ceil")
    s = torch.pow(2.0, scale.double() - 127)
    amax = x.unflatten(-1, (-1, 32)).abs().amax(-1)
    assert (amax <= 6 * s).all()
    assert ((amax > 3 * s) | (scale == 0)).all()


@pytest.mark.parametrize("rule", mx.RULES)
def test_extremes_saturate_and_zero_blocks_are_zero(rule):
    tiny, huge = 5e-324, 1.7e308
    x = torch.tensor([0.0, tiny, huge], dtype=torch.float64).view(3, 1).repeat(1, 32)
    packed, scale = mx.encode(x, rule)
    assert scale.flatten().tolist() == [0, 0, 254]
    got = mx.decode(packed, scale, torch.float64)[:, 0].tolist()
    assert got == [0.0, 0.0, 6.0 * 2.0**127]
    with pytest.raises(ShapeError, match="finite"):
        mx.encode(torch.full((1, 32), torch.inf), rule)


def test_report_52_edge_codes():
    packed = torch.zeros(5, 16, dtype=torch.uint8)
    packed[:, 0] = 0x72  # 1 then 6
    scale = torch.tensor([[0], [127], [254], [255], [1]], dtype=torch.uint8)
    for dtype in DTYPES:
        got = mx.decode(packed, scale, dtype)
        assert got[0, 0].item() == 2.0**-127 == pytest.approx(5.877e-39, rel=1e-3)
        assert got[1, :2].tolist() == [1, 6]
        assert got[2, 0].item() == 2.0**127
        assert got[3].isnan().all()
        overflow = 6 * 2.0**127 if dtype is torch.float64 else torch.inf
        assert got[2, 1].item() == overflow
    nibbles = torch.zeros(1, 16, dtype=torch.uint8)
    nibbles[0, :4] = torch.tensor([0x21, 0x43, 0x65, 0x87])
    got = mx.decode(nibbles, torch.tensor([[127]], dtype=torch.uint8), torch.float32)
    assert got[0, :8].tolist() == [0.5, 1, 1.5, 2, 3, 4, 6, 0]
    assert torch.signbit(got[0, 7])


def test_low_nibble_first_in_all_sixteen_codes():
    packed = torch.zeros(1, 16, dtype=torch.uint8)
    packed[0, :8] = torch.tensor([16, 50, 84, 118, 152, 186, 220, 254])
    one = torch.tensor([[127]], dtype=torch.uint8)
    assert mx.decode(packed, one, torch.float64)[0, :16].tolist() == CODES


def test_report_40_group_size_and_scale_dtype():
    K = 3584
    packed = torch.zeros(2, K // 2, dtype=torch.uint8)
    good = torch.full((2, 112), 127, dtype=torch.uint8)
    assert mx.decode(packed, good, torch.bfloat16).shape == (2, K)
    for scale, words in [
        (torch.zeros(2, 224, dtype=torch.uint8), r"needs scale \(2, 112\), got"),
        (torch.zeros(1, 112, dtype=torch.uint8), r"needs scale \(2, 112\), got"),
        (torch.ones(2, 112), "MXFP4 scale is stored as uint8: got torch.float32"),
    ]:
        with pytest.raises(ShapeError, match=words):
            mx.decode(packed, scale, torch.bfloat16)


def test_report_40_last_row_of_expert_895():
    packed = torch.zeros(896, 2, 16, dtype=torch.uint8)
    scale = torch.full((896, 2, 1), 127, dtype=torch.uint8)
    packed[895, 1] = torch.arange(16, dtype=torch.uint8) * 16 + 5
    scale[895, 1] = 120
    got = mx.decode(packed, scale, torch.float32)
    want = []
    for byte in packed[895, 1].tolist():
        want += [CODES[byte % 16] * 2.0**-7, CODES[byte // 16] * 2.0**-7]
    assert got[895, 1].tolist() == want
    assert not got[:895].any()


def test_refusals_name_the_rule():
    with pytest.raises(ShapeError, match="multiple of 32 values: got 33"):
        mx.encode(torch.zeros(1, 33))
    with pytest.raises(ShapeError, match=r"one of .* got 'nearest'"):
        mx.encode(torch.zeros(1, 32), "nearest")
    packed, scale = random_mx((1,), 1, seed=0)
    with pytest.raises(ShapeError, match=r"decodes to one of .* got torch.float16"):
        mx.decode(packed, scale, torch.float16)
