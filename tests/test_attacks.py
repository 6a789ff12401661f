"""The attack on what clients of FedCCH send, step by step, and of whom it says what it found."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fgl_core.analysis.privacy import VIEWS, attack, changed_bits, kept_by_hash
from fgl_core.study import privacy as attacks
from fgl_core.study.spec import Spec

SETS = "digits-01,digits-23,digits-45"
SIZE = {
    "task": "privacy",
    "setting": SETS,
    "secret": "size",
    "dataset": "digits-01",
    "clients": 20,
    "graphs": 4,
}
WIDTHS = {"signature": 6, "representation": 3, "update": 9, "norms": 2}


def sent(truth: np.ndarray, rng: np.random.Generator, shift: float = 0.6) -> dict[str, np.ndarray]:
    """Parts whose first column is shifted up or down by what is true; each part has a scale of its own."""
    found = {}
    for number, (part, width) in enumerate(WIDTHS.items()):
        columns = rng.normal(size=(len(truth), width))
        columns[:, 0] += np.where(truth, shift, -shift)
        found[part] = 10.0**number * (columns + 5)
    return found


def ridge(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights and intercept that minimise ‖y − x w − c‖² + penalty ‖w‖²."""
    centred = x - x.mean(axis=0)
    weights = np.linalg.solve(centred.T @ centred + penalty * np.eye(x.shape[1]), centred.T @ (y - y.mean()))
    return weights, float(y.mean() - x.mean(axis=0) @ weights)


def left_out(x: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """Squared error on each shadow client of the model of all others."""
    errors = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        weights, intercept = ridge(x[others], y[others], penalty)
        errors.append((y[i] - x[i] @ weights - intercept) ** 2)
    return sum(errors)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_attack_is_a_ridge_classifier_of_equal_parts(seed: int) -> None:
    """Ridge regression on ± 1, each shadow client left out in turn for each of seventeen penalties."""
    rng = np.random.default_rng(seed)
    truth, asked = np.arange(16) % 2, np.arange(150) % 2
    shadow, target = sent(truth, rng), sent(asked, rng)
    penalties = [10.0**power for power in np.arange(-3, 5.1, 0.5)]
    guesses = attack(shadow, truth, target)
    assert guesses.keys() == VIEWS.keys()
    for view, guess in guesses.items():
        parts = view.split(" and ")
        known, unknown = [], []
        for part in parts:
            mean, std = shadow[part].mean(axis=0), shadow[part].std(axis=0)
            known.append((shadow[part] - mean) / std / WIDTHS[part] ** 0.5)
            unknown.append((target[part] - mean) / std / WIDTHS[part] ** 0.5)
        x, y = np.hstack(known), 2.0 * truth - 1
        penalty = min(penalties, key=lambda value: left_out(x, y, value))
        weights, intercept = ridge(x, y, penalty)
        expected = np.hstack(unknown) @ weights + intercept > 0
        assert 0 < expected.sum() < len(asked), view
        np.testing.assert_array_equal(guess, expected, err_msg=view)


def test_targets_are_set_beside_the_shadows_and_not_beside_each_other() -> None:
    truth, ones = np.arange(100) % 2, np.ones(40, int)
    shadow, target = (sent(values, np.random.default_rng(3), shift=3) for values in (truth, ones))
    alone = attack(shadow, truth, {part: values[:1] for part, values in target.items()})
    together = attack(shadow, truth, target)
    for view in VIEWS:
        assert together[view].mean() > 0.9 and alone[view].tolist() == [1], view


@pytest.mark.parametrize("secret", ["set", "size", "member"])
def test_clients_of_one_answer_hold_different_graphs(secret: str) -> None:
    dataset = None if secret == "set" else "digits-01"
    spec = Spec.parse(SIZE | {"secret": secret, "dataset": dataset, "clients": 21 if secret == "set" else 20})
    scene = attacks.Scene(spec, torch.device("cpu"))
    for side in ("shadow", "target"):
        held = [tuple(scene.visit(side, number).client.train) for number in range(6)]
        assert len(set(held)) == 6, side
        assert {len(set(graphs)) for graphs in held} == {4}


def test_what_is_kept_and_what_changes_are_the_target_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Visits are invented: what shadow and target clients send, and their graphs, are drawn at random."""
    rng = np.random.default_rng(0)
    seen: dict[str, list] = {"shadow": [], "target": []}

    def visit(self: attacks.Scene, side: str, number: int) -> SimpleNamespace:
        moments = [
            {part: rng.normal(size=64) ** (1 + 2 * (side == "target")) for part in WIDTHS}
            for _ in self.spec.attacked
        ]
        graphs = rng.normal(size=(4, 64))
        if side == "target":
            graphs[0] *= 100  # decides the signature by itself
        seen[side].append((moments, graphs))
        return SimpleNamespace(watched=lambda: iter(moments), represented=lambda: graphs)

    monkeypatch.setattr(attacks.Scene, "visit", visit)
    found = attacks.leakage(Spec.parse(SIZE | {"attacked": (1, 3)}), torch.device("cpu"))
    kept = [
        round(kept_by_hash(np.stack([moments[k]["representation"] for moments, _ in seen["target"]])), 5)
        for k in (0, 1)
    ]
    assert found["kept"] == kept and kept[0] != kept[1]
    changed = np.concatenate([changed_bits(graphs) for _, graphs in seen["target"]])
    assert found["changed_bits"] == np.bincount(changed).tolist()
    assert (found["classes"], found["targets"], found["rounds"]) == (2, 20, [1, 3])


def test_each_seed_has_a_federation_of_its_own() -> None:
    scenes = [
        attacks.Scene(Spec.parse(SIZE | {"seed": seed, "attacked": (1,)}), torch.device("cpu"))
        for seed in (3, 4)
    ]
    assert [scene.run.seed for scene in scenes] == [3, 4]
    first, second = (scene.graphs["digits-01"]["target"] for scene in scenes)
    assert set(first) != set(second)
    started, other = (next(iter(scene.broadcasts[0].values())) for scene in scenes)
    assert not torch.equal(started, other)
