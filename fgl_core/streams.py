"""Named streams of random numbers.

Every draw of a run comes from a stream named by its purpose, its client and its round, derived from the run's
seed alone. The order in which clients are visited, the number of workers and other draws therefore cannot
change it, and no global random state is read or written.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


#: The draws made before training begins. All others belong to ``training``: views, dropout, shuffling.
SETUP = ("partition", "split", "init")
SOURCES = (*SETUP, "training")  # of chance in a run


@dataclass(frozen=True)
class Streams:
    """The streams of one seed: ``Streams(0).torch("dropout", "client-3", 17)``.

    Attributes:
        seed: root of the streams.
        varied: those of :data:`SOURCES` whose streams have another root.
        other: that root.
    """

    seed: int
    varied: tuple[str, ...] = ()
    other: int = 0

    def _entropy(self, purpose: str, keys: tuple[str | int, ...]) -> int:
        group = purpose if purpose in SETUP else "training"
        root = self.other if group in self.varied else self.seed
        name = "/".join(str(part) for part in (root, purpose, *keys))
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")

    def numpy(self, purpose: str, *keys: str | int) -> np.random.Generator:
        """A fresh NumPy generator at the start of the named stream."""
        return np.random.default_rng(self._entropy(purpose, keys))

    def torch(self, purpose: str, *keys: str | int) -> torch.Generator:
        """A fresh torch CPU generator at the start of the named stream."""
        import torch

        return torch.Generator().manual_seed(self._entropy(purpose, keys) >> 1)  # torch takes 63 bits
