"""Specifications: what they refuse before anything is loaded, and that no run has two."""

from __future__ import annotations

import pytest
import torch

from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.models import build_graph_model
from fgl_core.study.catalogue import PROFILES, STUDIES, study_specs
from fgl_core.study.spec import RunSpec, Spec


def parse(method="fedcch", **values):
    return RunSpec.parse({"method": method, **values})


def fedcch(**parameters):
    return {"name": "fedcch", **parameters}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"setting": "CHEM", "hidden": 48}, "48 numbers.*square"),
        ({"setting": "CHEM", "hidden": 48, "method": fedcch(signature="wavelet")}, "48 numbers.*square"),
        ({"setting": "CHEM", "hidden": 48, "method": fedcch(clustering="random")}, "48 numbers.*square"),
        ({"setting": "CHEM", "norm": "none", "share_norm": True}, "norm none leaves nothing to share"),
        ({"setting": "CHEM", "method": "fedavg", "share_norm": True}, "norm none leaves nothing to share"),
        ({"setting": "CHEM", "method": "fedbn", "share_norm": True}, "norms never travel with fedbn"),
        ({"setting": "CHEM", "method": "local", "norm": "pf", "share_norm": True}, "never travel with local"),
        ({"dataset": "cora", "method": "fedsage", "backbone": "gcn"}, "'gcn': .* fedsage is always sage"),
        ({"dataset": "cora", "method": "fedsage+", "backbone": "gat"}, r"'gat': .* fedsage\+ is always sage"),
    ],
)
def test_what_could_only_fail_later_is_refused(values, says):
    with pytest.raises(InputError, match=says) as refusal:
        parse(**values)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "values",
    [
        {"setting": "CHEM", "hidden": 36},  # hashes scale any square, wavelets too: no power of two is needed
        {"setting": "CHEM", "hidden": 36, "method": fedcch(signature="wavelet")},
        {"setting": "CHEM", "hidden": 48, "method": fedcch(signature="cosine")},
        {"setting": "CHEM", "hidden": 48, "method": fedcch(clustering="domain")},
        {"setting": "CHEM", "hidden": 48, "method": "fedavg"},
        {"setting": "CHEM", "share_norm": True},
        {"dataset": "cora", "method": "fedsage", "backbone": "sage"},
        {"dataset": "cora", "method": "fedavg", "backbone": "gcn"},
    ],
)
def test_what_works_is_not(values):
    spec = parse(**values)
    assert Spec.parse(spec.model_dump(mode="json")).digest == spec.digest


@pytest.mark.parametrize("name", sorted(name for name, method in METHODS.items() if "graph" in method.tasks))
def test_norms_are_kept_where_sharing_them_changes_nothing(name):
    method = METHODS[name]()

    def travels(share_norm):
        model = build_graph_model(
            method.backbone or "gin",
            3,
            16,
            2,
            norm="batch",
            share_norm=share_norm,
            dropout=0.5,
            generator=torch.Generator().manual_seed(0),
            dtype=torch.float32,
        )
        return set(method.travels(model))

    assert method.keeps_norms == (travels(True) == travels(False))


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_study_has_distinct_runs_that_can_be(study, profile):
    specs = study_specs(study, profile)
    assert specs and len({spec.digest for spec in specs}) == len(specs)
    assert [Spec.parse(spec.model_dump(mode="json")).digest for spec in specs] == [s.digest for s in specs]
