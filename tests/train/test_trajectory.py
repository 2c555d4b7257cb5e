"""What a sample holds of each token, and what is left when it begins anew."""

from k3.train.rollout import Piece
from k3.train.trajectory import Trajectory


class Silent:
    """An environment that says nothing."""

    def begin(self):
        return [1]

    def reply(self, written):
        return None

    def reward(self):
        return 0.0


def test_it_begins_anew_in_another_environment():
    one = Trajectory("k", "g", episode=Silent())
    one.hear([1, 2])
    one.write(Piece("k", (3, 4), (-1.0, -2.0), False), 5)
    assert one.num_written == 2
    assert (one.turn, one.staleness(7)) == (2, 2.0)
    new = Silent()
    one.restart(new)
    assert one.episode is new
    assert (one.tokens, one.written, one.logprobs, one.versions) == ([], [], [], [])
    assert (one.turn, one.num_written, one.staleness(7)) == (0, 0, 0.0)
