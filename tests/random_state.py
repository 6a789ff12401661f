"""The global random states, which nothing in the package may touch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def untouched_random_state(seed: int) -> Iterator[None]:
    """Seed all global generators, and require that each stands where it stood when the block ends.

    A draw moves a generator. What reads its state and puts it back does not: compare what blocks under two
    seeds give.
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    before = _states()
    yield
    touched = [name for name, state in _states().items() if state != before[name]]
    assert not touched, f"the global random state of {' and '.join(touched)} was read or written"


def _states() -> dict[str, object]:
    kind, keys, *rest = np.random.get_state()
    return {
        "random": random.getstate(),
        "numpy": (kind, keys.tobytes(), *rest),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }
