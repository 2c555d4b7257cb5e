"""The sweep's laws: known ones are found, and their ratio with its uncertainty."""

import math

import pytest
import torch

from k3 import recipes
from k3.config import sizes
from k3.errors import RequestError
from k3.train import plot, pretrain, scaling
from k3.train.scaling import Point


def runs(variant, factor, noise=0.0):
    """Runs at eight computes whose loss is 5 (factor C)^-0.1, off by +-noise."""
    return [
        Point(
            variant=variant,
            seed=i % 2,
            parameters=10,
            operations=10.0 ** (9 + i / 2),
            loss=5 * (factor * 10.0 ** (9 + i / 2)) ** -0.1 * (1 + (-1) ** i * noise),
        )
        for i in range(8)
    ]


def test_a_law_is_found():
    law = scaling.fit(runs("a", 1))
    assert law.alpha == pytest.approx(0.1)
    assert law.loss(1e10) == pytest.approx(5 * 1e10**-0.1)
    assert law.log_operations(law.loss(1e10)) == pytest.approx(math.log(1e10))


def test_the_ratio_is_that_of_computes_at_equal_loss():
    result = scaling.compare(runs("good", 2) + runs("plain", 1), draws=50)
    assert result.ratio == pytest.approx(2)
    assert result.low == pytest.approx(2)
    assert result.high == pytest.approx(2)
    assert list(result.laws) == ["good", "plain"]
    low, high = (f([p.loss for p in runs("plain", 1)]) for f in (min, max))
    assert low < result.at_loss < high


def test_noise_widens_the_interval_around_the_ratio():
    noisy = runs("good", 2, 0.01) + runs("plain", 1, 0.01)
    result = scaling.compare(noisy, draws=300)
    assert result.low < 2 < result.high
    assert result.high / result.low > 1.1
    assert scaling.compare(noisy, draws=300) == result


def test_the_picture_says_the_ratio():
    points = runs("good", 2) + runs("plain", 1)
    text = scaling.picture(points, scaling.compare(points, draws=20))
    assert "Equal loss at 2.00 times the compute (2.00 to 2.00)" in text
    # One dot a run, and one in the legend for each variant.
    assert text.count("<circle") == len(points) + 2
    assert plot.COLOURS[1] in text


def test_without_attn_res_a_sublayer_reads_the_plain_sum():
    model = pretrain.fresh(recipes.scaling(32))
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight", "lm_head.weight")):
            torch.nn.init.normal_(p, std=0.1)
    ids = torch.arange(9)[None]
    mixed = model(ids)
    scaling.without_attn_res(model)
    taps = {}
    plain = model(ids, taps=taps)
    assert not torch.allclose(plain, mixed)
    last = taps[f"layers.{4}.out_prefix"]
    assert torch.equal(taps["output_attn_res"], last)
    parts = [taps[f"layers.{i}.self_attn"] for i in range(5)]
    # What the mixers alone have not explained, the feed-forwards have added.
    assert (last - taps["embed_tokens"] - sum(parts)).abs().max() > 1e-3
    plain.sum().backward()
    query = model.get_parameter("language_model.model.output_attn_res_proj.weight")
    assert query.grad is None


def test_the_sweep_grows_and_counts_its_operations():
    found = [recipes.scaling(width) for width in recipes.SCALING]
    active = [sizes.parameters(r.config).active for r in found]
    assert active == sorted(active)
    assert 1e5 < active[0] < active[-1] < 1e6
    assert scaling.operations(found[0].config, 100) == 600 * active[0]
    with pytest.raises(RequestError, match="widths 32, 48, 64, 96: got 33"):
        recipes.scaling(33)
