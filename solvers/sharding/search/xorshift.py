"""Random numbers inside compiled loops, the same for the same seed on every machine: xorshift (Marsaglia, 2003)."""

import numpy as np
import numpy.typing as npt

from crossopt.formulation.compiled import compiled

Seed = npt.NDArray[np.uint64]


def seed_of(number: int) -> Seed:
    """A state of its own for each number from 0 on."""
    return np.random.default_rng(number).integers(1, 1 << 63, 1, np.uint64)


@compiled
def drawn(seed: Seed, below: int) -> int:
    """A number from 0 to before `below`."""
    state = seed[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    seed[0] = state
    return int(state >> np.uint64(20)) % below
