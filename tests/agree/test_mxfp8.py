import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.kernels import mxfp8 as fast
from k3.spec import mx
from k3.spec import mxfp8 as spec

# Quarters of E4M3 steps near the top of a binade, so that ties are common.
values = st.integers(-1792, 1792).map(lambda n: n / 4)
groups = st.lists(values, min_size=32, max_size=32)


def codes(elements):
    # A negative value that rounds to zero may keep its sign or lose it.
    return [0 if c == 128 else c for c in elements.view(torch.uint8).tolist()]


@settings(deadline=None, max_examples=40)
@given(group=groups, exponent=st.integers(-140, 100))
def test_encode_and_decode_give_the_same_bits(group, exponent):
    x = torch.tensor(group, dtype=torch.float64) * 2.0**exponent
    elements, scale = fast.encode(x)
    block = spec.encode_block(mx.E4M3, [float(v) for v in x])
    assert scale.tolist() == [block.scale]
    assert codes(elements) == [0 if code == 128 else code for code in block.codes]
    decoded = [float(v) for v in spec.decode_block(mx.E4M3, block)]
    assert fast.decode(elements, scale, torch.float64).tolist() == decoded
    assert fast.rounded(x).tolist() == decoded


@settings(deadline=None, max_examples=20)
@given(group=groups, exponent=st.integers(-100, 100))
def test_single_precision_rounds_as_double(group, exponent):
    x = torch.tensor(group) * 2.0**exponent
    assert torch.equal(fast.rounded(x).double(), fast.rounded(x.double()))
