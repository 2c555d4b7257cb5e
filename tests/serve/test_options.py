"""What an engine's options refuse, and what going back costs."""

import pytest
from serving import engine
from small import config, model

from k3.errors import RequestError
from k3.serve.engine import EngineOptions
from k3.serve.options import LEAST, kept_bytes


@pytest.mark.parametrize("name", sorted(LEAST))
@pytest.mark.parametrize("value", [-1, True, 1.5, None])
def test_every_number_has_its_range(name, value):
    with pytest.raises(RequestError, match=f"^{name} must be a whole number, at least"):
        EngineOptions(**{name: value})


def test_a_step_has_room_for_every_row():
    with pytest.raises(RequestError, match=r"max_num_batched_tokens must be at least"):
        EngineOptions(max_num_seqs=9, max_num_batched_tokens=8)
    with pytest.raises(RequestError, match=r"max_num_seqs times 4, .* got 11 for 12;"):
        EngineOptions(
            max_num_seqs=3, max_num_batched_tokens=11, num_speculative_tokens=3
        )
    with pytest.raises(RequestError, match=r"max_num_long_tokens must be at least"):
        EngineOptions(max_num_long_seqs=9, max_num_long_tokens=8)


def test_a_folder_of_states_needs_a_cache():
    with pytest.raises(RequestError, match=r"cache_dir keeps .* got 'x' and no cache;"):
        EngineOptions(cache_dir="x")


@pytest.mark.parametrize("keep", [1, 4])
def test_what_going_back_costs_is_what_a_state_takes(keep):
    net, made = model(), config()
    state = net.init_state(1, keep)
    for _ in range(keep + 2):
        _, state = net.step(state.lengths[:, None] % 7, state)
    plain = net.init_state(1)
    for _ in range(keep + 2):
        _, plain = net.step(plain.lengths[:, None] % 7, plain)
    assert state.nbytes - plain.nbytes == kept_bytes(made, keep, 4)
    assert kept_bytes(made, 0, 4) == 0


def test_the_limit_is_that_of_the_class():
    net = model()
    made = engine(net, long_tokens=30, state_bytes=60_000, long_state_bytes=70_000)
    room = 10_000 // (made.bytes_at(1) - made.bytes_at(0))
    assert made.bytes_at(made.limit(30)) <= 60_000 < made.bytes_at(made.limit(30) + 1)
    assert abs(made.limit(31) - made.limit(30) - room) <= 1
