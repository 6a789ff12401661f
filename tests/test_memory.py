"""FGSSL on Pubmed fits into a laptop: the contrast of thousands of nodes never stands in memory at once."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from fgl_core.study.execute import execute
from fgl_core.study.spec import RunSpec

record = execute(RunSpec.parse({"dataset": "pubmed", "clients": 5, "method": "fgssl", "rounds": 1}))
assert record["status"] == "done"
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_one_round_on_pubmed_peaks_below_two_and_a_half_gib(real_data):
    real_data("pubmed")
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    assert int(found.stdout) * unit < 2.5 * 1024**3
