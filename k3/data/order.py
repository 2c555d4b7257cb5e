"""Orders that are functions of a number: nothing is stored, nothing depends on luck.

A permutation of any size is a Feistel network over the next even power of two; what
falls outside is walked on until it falls inside, which keeps it a permutation.
Source: splitmix64's finalizer; Black and Rogaway 2002, cycle walking.
"""

_MASK = 2**64 - 1
_ROUNDS = 4


def mix(*numbers: int) -> int:
    """64 bits that depend on all the numbers and on their order."""
    state = 0
    for number in numbers:
        state = (state + number * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def fraction(*numbers: int) -> float:
    """A number of [0, 1) that depends on all the numbers."""
    return (mix(*numbers) >> 11) / 2**53


def place(index: int, size: int, seed: int) -> int:
    """Where `index` of range(size) comes to lie in the permutation of `seed`."""
    assert 0 <= index < size, "an index lies inside its range"
    half = (max(size - 1, 1).bit_length() + 1) // 2
    while True:
        index = _feistel(index, half, seed)
        if index < size:
            return index


def in_epochs(index: int, size: int, seed: int) -> int:
    """The item of a number that counts on for ever: each epoch has its own order."""
    epoch, at = divmod(index, size)
    return place(at, size, mix(seed, epoch))


def _feistel(value: int, half: int, seed: int) -> int:
    low = (1 << half) - 1
    left, right = value >> half, value & low
    for turn in range(_ROUNDS):
        left, right = right, left ^ (mix(seed, turn, right) & low)
    return left << half | right
