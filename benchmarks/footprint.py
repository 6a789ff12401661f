"""How much memory a round needs: a fresh process for each dataset and setting.

    python benchmarks/footprint.py

Each trains one round of FGSSL, or of FedStar, with one local epoch. Writes
``benchmarks/results/footprint.json``, which the book's cost table reads.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.timing import fresh_process, peak_mib, write
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

NODE = ("digits-knn", "cora", "citeseer", "pubmed")
SETTINGS = ("digits-01,digits-23", "CHEM", "BIO-CHEM", "MIX", "BIO-SN-CV", "BIO-CV", "ALL")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        torch.set_num_threads(1)
        node = options.alone in NODE
        data = {"dataset": options.alone} if node else {"setting": options.alone}
        spec = RunSpec.parse(
            {**data, "method": "fgssl" if node else "fedstar", "local_epochs": 1, "rounds": 1}
        )
        list(set_up(spec).run())
        print(peak_mib())
        return
    rows = []
    for name in (*NODE, *SETTINGS):
        (peak,) = fresh_process(__file__, "--alone", name)
        rows.append({"data": name, "peak_mib": round(peak)})
        print(rows[-1], flush=True)
    write("footprint", rows, key=("data",))


if __name__ == "__main__":
    main()
