"""GCFL and GCFL+ by hand: when a cluster is cut, where, and what each part gets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from fgl_core.federation import Server, Update
from fgl_core.methods import METHODS
from fgl_core.methods.gcfl import minimum_cut, time_warping
from fgl_core.streams import Streams
from fgl_core.study.catalogue import study_specs
from fgl_core.study.results import Results
from fgl_core.study.spec import RunSpec
from fgl_core.tables.labels import placed_runs


def vector_updates(vectors, weights=None, reports=None):
    reports = reports or [{}] * len(vectors)
    return [
        Update(index, (weights or [1] * len(vectors))[index], {"w": torch.tensor(vector)}, reports[index])
        for index, vector in enumerate(vectors)
    ]


def gcfl_server(clients, size=2, round_=21):
    zeros = {"w": torch.zeros(size, dtype=torch.float64)}
    return Server(outbox=[zeros] * clients, streams=Streams(0), round=round_)


PULLING = [[0.5, 0.1], [0.5, 0.0], [-0.5, 0.0], [-0.5, -0.1]]


def test_gcfl_cuts_where_clients_pull_apart():
    method = METHODS["gcfl"]()
    server = gcfl_server(4)
    order = [0, 2, 1, 3]
    method.aggregate(server, vector_updates([PULLING[i] for i in order], weights=[1, 2, 3, 4]))
    assert server.state["clusters"] == [[0, 2], [1, 3]]
    assert server.notes["clusters"] == [0, 1, 0, 1]
    first = (1 * np.array(PULLING[0]) + 3 * np.array(PULLING[1])) / 4
    second = (2 * np.array(PULLING[2]) + 4 * np.array(PULLING[3])) / 6
    for client, expected in zip(range(4), [first, second, first, second], strict=True):
        np.testing.assert_allclose(server.outbox[client]["w"], expected)
    # two members are never cut
    server.notes, before = {}, [tensors["w"] for tensors in server.outbox]
    moved = [
        (tensor + torch.tensor(PULLING[i])).tolist() for tensor, i in zip(before, [0, 2, 3, 1], strict=True)
    ]
    method.aggregate(server, vector_updates(moved))
    assert server.notes["clusters"] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("change", "options", "round_"),
    [
        ("warm-up", {}, 20),
        ("mean too large", {"epsilon_1": 0.0}, 21),
        ("no large change", {"epsilon_2": 0.6}, 21),
    ],
)
def test_gcfl_cuts_only_under_its_condition(change, options, round_):
    server = gcfl_server(4, round_=round_)
    METHODS["gcfl"](**options).aggregate(server, vector_updates(PULLING))
    assert server.notes["clusters"] == [0, 0, 0, 0], change
    np.testing.assert_allclose(server.outbox[3]["w"], np.mean(PULLING, axis=0), atol=1e-12)


def test_gcfl_looks_at_changes_not_at_values():
    server = gcfl_server(4)
    server.outbox = [{"w": torch.tensor(vector, dtype=torch.float64)} for vector in PULLING]
    METHODS["gcfl"]().aggregate(server, vector_updates(PULLING))
    assert server.notes["clusters"] == [0, 0, 0, 0]


def test_gcfl_plus_cuts_by_histories_of_gradient_norms():
    method = METHODS["gcfl+"](warm_up=3, window=5)
    level = [1.0, 5.0, 1.1, 5.2]  # norms pair clients 0, 2 and 1, 3; changes pair 0, 1 and 2, 3
    found = []
    server = gcfl_server(4)
    for number in range(1, 9):
        reports = [{"gradient norm": np.array([value + 0.01 * number], np.float32)} for value in level]
        server.round, server.notes = number, {}
        moved = [
            (tensors["w"] + torch.tensor(vector)).tolist()
            for tensors, vector in zip(server.outbox, PULLING, strict=True)
        ]
        method.aggregate(server, vector_updates(moved, reports=reports))
        found.append(server.notes["clusters"])
    assert found == [[0, 0, 0, 0]] * 4 + [[0, 1, 0, 1]] * 4
    assert len(server.state["history"][0]) == 3  # cleared by the cut in round 5


def test_time_warping_is_the_cheapest_alignment():
    def cheapest(a, b):
        if len(a) == 1 and len(b) == 1:
            return (a[0] - b[0]) ** 2
        rest = [(a[:-1], b), (a, b[:-1]), (a[:-1], b[:-1])]
        return (a[-1] - b[-1]) ** 2 + min(cheapest(x, y) for x, y in rest if x and y)

    rng = np.random.default_rng(0)
    for _ in range(10):
        a, b = rng.normal(size=5).tolist(), rng.normal(size=4).tolist()
        assert time_warping(a, b) == pytest.approx(cheapest(a, b) ** 0.5)
    assert time_warping([1, 2, 3], [1, 1, 2, 2, 3, 3]) == 0
    assert time_warping([0], [3]) == 3


def test_minimum_cut_is_the_smallest_of_all():
    rng = np.random.default_rng(0)
    for _ in range(10):
        weights = rng.random((6, 6)) * 2
        weights = weights + weights.T

        def cut(part, weights=weights):
            rest = [i for i in range(6) if i not in part]
            return weights[np.ix_(part, rest)].sum()

        parts = minimum_cut([3, 5, 7, 11, 13, 17], weights)
        assert sorted(parts[0] + parts[1]) == [3, 5, 7, 11, 13, 17]
        found = [[3, 5, 7, 11, 13, 17].index(member) for member in parts[0]]
        smallest = min(cut(list(part)) for size in (1, 2, 3) for part in combinations(range(6), size))
        assert cut(found) == pytest.approx(smallest)
    # nothing in common at all
    assert [len(part) for part in minimum_cut([0, 1, 2], np.zeros((3, 3)))] in ([1, 2], [2, 1])


def test_studies_take_the_thresholds_of_each_setting():
    for study in ("fedcch-table1", "fedcch-norms"):
        found = {
            (spec.setting, spec.method.epsilon_1, spec.method.epsilon_2)
            for spec in study_specs(study, "paper", {"method": ["gcfl"]})
        }
        mixed = {(setting, 0.08, 0.4) for setting in ("MIX", "BIO-SN-CV", "BIO-CV", "ALL")}
        assert found == {("CHEM", 0.07, 0.28), ("BIO-CHEM", 0.07, 0.35)} | mixed
    # those of CHEM are the defaults: naming them makes no other run
    (spec,) = study_specs("fedcch-table1", "lite", {"method": ["gcfl"], "setting": ["CHEM"], "seed": [0]})
    plain = {"setting": "CHEM", "method": "gcfl", "rounds": 20}
    assert spec.digest == RunSpec.parse(plain).digest


def test_thresholds_that_follow_from_the_setting_are_no_part_of_a_name():
    specs = study_specs("fedcch-table1", "lite", {"method": ["gcfl"]})
    assert {label for _, label, _ in placed_runs(Results("", "lite", specs, {}))} == {"GCFL"}
    other = RunSpec.parse({"setting": "MIX", "method": {"name": "gcfl", "epsilon_1": 0.5}, "rounds": 20})
    named = {label for _, label, _ in placed_runs(Results("", "lite", [*specs, other], {}))}
    assert "GCFL, epsilon 1 0.5" in named
