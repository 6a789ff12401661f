"""Two rounds of every method against stored numbers: a change of numbers needs a new revision.

When a method's numbers change on purpose, bump its ``revision`` and run ``python tests/test_golden.py``; it
writes ``tests/golden.json`` anew. Records of the old revision are then stale. A method of revision 0 is a
draft, and has no stored numbers yet.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fgl_core.methods import METHODS
from fgl_core.study.execute import execute
from fgl_core.study.spec import RunSpec

GOLDEN = Path(__file__).with_name("golden.json")
SETTINGS = {
    "node": {"dataset": "digits-knn", "clients": 3, "hidden": 16, "rounds": 2, "local_epochs": 2},
    "graph": {"setting": "digits-01,digits-23", "hidden": 16, "rounds": 2},
}
CASES = [
    (name, task)
    for name, method in METHODS.items()
    for task in method.tasks
    if task in SETTINGS and method.revision  # a draft's numbers may move
]


def measured(name: str, task: str) -> dict:
    method = {"name": name, **({"generator_epochs": 2} if name == "fedsage+" else {})}
    record = execute(RunSpec.parse({**SETTINGS[task], "method": method}), dtype="float64")
    curves, kinds = record["curves"], record["bytes"]["up"]
    return {
        "revision": record["revision"],
        "loss": curves["loss"],
        "val_accuracy": curves["val_accuracy"],
        "test_accuracy": curves["test_accuracy"],
        "bytes_up": {kind: sum(values) for kind, values in kinds.items()},
    }


@pytest.mark.parametrize(("name", "task"), CASES)
def test_numbers_move_only_with_the_revision(name, task):
    stored = json.loads(GOLDEN.read_text()).get(f"{name}, {task}")
    assert stored, f"{name} has no stored numbers: run `python tests/test_golden.py`"
    now = measured(name, task)
    assert now["revision"] == stored["revision"], "run `python tests/test_golden.py` after bumping a revision"
    assert now["bytes_up"] == stored["bytes_up"]
    for curve in ("loss", "val_accuracy", "test_accuracy"):
        np.testing.assert_allclose(
            now[curve], stored[curve], rtol=1e-4, atol=1e-5, err_msg=f"{curve} moved: bump {name}'s revision"
        )


if __name__ == "__main__":
    golden = {f"{name}, {task}": measured(name, task) for name, task in CASES}
    GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")
