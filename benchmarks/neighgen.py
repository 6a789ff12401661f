"""A step of training FedSage+'s neighbour generators, in rounds of FedAvg.

    python benchmarks/neighgen.py

On Cora with five clients, one epoch of all generators together, cross-client gradients included, against one
round of FedAvg with four local epochs. Writes ``benchmarks/results/neighgen.json``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.timing import write
from fgl_core.methods import METHODS
from fgl_core.streams import Streams
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

SHORT, LONG, TARGET = 2, 12, 3.0  # epochs whose difference in time is that of ten


def main() -> None:
    torch.set_num_threads(1)
    clients = set_up(RunSpec.parse({"dataset": "cora", "method": "fedsage+"})).clients
    run = set_up(RunSpec.parse({"dataset": "cora", "method": "fedavg", "rounds": 1000})).run()

    def generators(epochs: int) -> float:
        started = time.process_time()
        METHODS["fedsage+"](generator_epochs=epochs).train_generators(clients, Streams(0))
        return time.process_time() - started

    def rounds(count: int) -> float:
        started = time.process_time()
        for _ in range(count):
            next(run)
        return (time.process_time() - started) / count

    rounds(1), generators(1)
    epochs, fedavg = [], []
    for _ in range(5):
        epochs.append((generators(LONG) - generators(SHORT)) / (LONG - SHORT))
        fedavg.append(rounds(5))
    epoch, fedavg_round = median(epochs), median(fedavg)
    ratio = median(a / b for a, b in zip(epochs, fedavg, strict=True))
    print(f"generator epoch {epoch:.4f} s, FedAvg round {fedavg_round:.4f} s: {ratio:.2f}, target {TARGET}")
    row = {"dataset": "cora", "epoch_seconds": round(epoch, 5), "round_seconds": round(fedavg_round, 5)}
    write("neighgen", [row | {"ratio": round(ratio, 2)}], key=("dataset",))


if __name__ == "__main__":
    main()
