"""Tables as a reader sees them, from frames by hand: which text, which is bold, which rows and columns."""

from __future__ import annotations

import re
from math import nan
from typing import Any

import pandas as pd
import pytest
from pandas.io.formats.style import Styler
from synthetic import synthetic_record

from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.grid import Scale, grid
from fgl_core.study.results import Results, collect
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Store, write_record
from fgl_core.tables.layout import (
    accuracy_table,
    detectable_text,
    difference_table,
    missing_table,
    sensitivity_table,
    settings_table,
    wide_table,
)

ROW: dict[str, Any] = {
    "dataset": "cora", "clients": 5, "method": "FGSSL", "best": False, "seeds": 5, "n": 5, "diverged": 0,
    "failed": 0, "stale": 0, "mean": 0.8, "std": 0.01, "difference": 0.02, "low": 0.011, "high": 0.029,
    "p": 0.012, "p_holm": 0.024, "pairs": 5, "detectable": 0.013, "corrected_low": -0.004,
    "corrected_high": 0.044,
}  # fmt: skip


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([ROW | row for row in rows])


def bold(styler: Styler) -> set[tuple[Any, str]]:
    """Row and column of each cell in bold."""
    cells = re.findall(r"([^{}]*){\s*font-weight: bold", styler.to_html())
    places = re.findall(r"row(\d+)_col(\d+)", " ".join(cells))
    return {(styler.data.index[int(row)], styler.data.columns[int(column)]) for row, column in places}


def test_the_best_of_a_column_and_nothing_else_is_bold():
    rows = [
        {"method": "FedAvg", "clients": 7, "best": True},
        {"method": "FGSSL", "clients": 7},
        {"method": "FedAvg"},
        {"best": True},
        {"method": "FedAvg", "dataset": "citeseer"},
    ]
    table = accuracy_table(frame(*rows))
    assert bold(table) == {(("cora", "FedAvg"), "7 clients"), (("cora", "FGSSL"), "5 clients")}
    without = frame(*rows).drop(columns="best")
    assert bold(wide_table(without, without["method"], "", uuid="x")) == set()


def test_rows_stand_in_the_order_of_the_frame_and_numbers_of_clients_rise():
    rows = [{"method": method, "clients": clients} for clients in (10, 5, 7) for method in ("B", "A")]
    table = accuracy_table(frame(*rows, {"method": "B", "dataset": "acm", "clients": 5})).data
    assert table.index.tolist() == [("cora", "B"), ("cora", "A"), ("acm", "B")]
    assert table.columns.tolist() == ["5 clients", "7 clients", "10 clients"]
    assert table.loc[("acm", "B")].tolist() == ["80.0 ± 1.0", "", ""]
    across = difference_table(
        frame({"dataset": "cora"}, {"dataset": "acm", "difference": 0.03}), columns="dataset"
    )
    assert across.data.columns.tolist() == ["cora", "acm"]
    assert across.data.loc["FGSSL"].tolist() == ["+2.0 [+1.1, +2.9]", "+3.0 [+1.1, +2.9]"]


def test_captions_say_what_is_measured_and_to_what_it_is_compared():
    table = frame({})
    assert accuracy_table(table, what="macro-F1").caption.startswith("Test macro-F1 in %, mean")
    for to, start in (("neither", "Difference to neither in"), (None, "Difference in percentage points")):
        assert difference_table(table, to).caption.startswith(start)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "80.0 ± 1.0"),
        ({"n": 1, "std": nan}, "80.0 (1 of 5)"),
        ({"n": 2, "failed": 3}, "80.0 ± 1.0 (2 of 5, 3 failed)"),
        (
            {"n": 2, "diverged": 1, "failed": 1, "stale": 1},
            "80.0 ± 1.0 (2 of 5, 1 diverged, 1 failed, 1 stale)",
        ),
        ({"n": 0, "mean": nan, "std": nan, "diverged": 5}, "missing (0 of 5, 5 diverged)"),
    ],
)
def test_what_is_said_of_a_cell(changes, text):
    assert accuracy_table(frame(changes)).data.iloc[0, 0] == text


def test_a_method_with_any_pair_is_shown_and_one_without_is_not():
    nothing = {"pairs": 0, "difference": nan, "low": nan, "high": nan, "detectable": nan}
    rows = [{"method": "FedAvg"} | nothing, {"method": "FedAvg", "clients": 7} | nothing]
    rows += [{}, {"clients": 7} | nothing, {"method": "one", "pairs": 1, "low": nan, "high": nan}]
    table = difference_table(frame(*rows)).data
    assert table.index.tolist() == [("cora", "FGSSL"), ("cora", "one")]
    assert table.loc[("cora", "FGSSL")].tolist() == ["+2.0 [+1.1, +2.9]", "missing"]
    assert table.loc[("cora", "one")].tolist() == ["+2.0", ""]


def test_what_could_have_been_found_has_a_span_only_where_it_differs():
    same, found = (
        frame({}, {"detectable": 0.01304}, {"detectable": nan}),
        "so many seeds find a true difference of",
    )
    assert detectable_text(same) == f"Four times out of five, {found} 1.3 points."
    other = detectable_text(frame({}, {"detectable": 0.02}))
    assert other.endswith(f"{found} 1.3 points where seeds agree most, 2.0 where least.")
    assert detectable_text(frame({"detectable": nan})) == ""


def test_the_statistics_of_a_difference_stand_in_their_columns():
    rows = [{}, {"method": "tiny", "p": 0.0004, "p_holm": 0.001}, {"method": "one", "pairs": 1}]
    shown = sensitivity_table(frame(*rows)).data.set_index("method")
    assert shown.index.tolist() == ["FGSSL", "tiny"]
    assert shown.loc["FGSSL"].to_dict() == {
        "dataset": "cora",
        "clients": 5,
        "pairs": 5,
        "detectable": "1.3",
        "95 % interval": "[+1.1, +2.9]",
        "p": "0.012",
        "p (Holm)": "0.024",
        "Nadeau–Bengio interval": "[-0.4, +4.4]",
    }
    assert shown.loc["tiny", ["p", "p (Holm)"]].tolist() == ["< 0.001", "0.001"]


def test_a_missing_run_of_local_is_one_though_it_is_measured_twice(tmp_path, monkeypatch):
    def two(profile):
        """Two methods."""
        return grid(Scale(("cora",), (5, 7), 3, rounds=2), ({"method": name} for name in ("local", "fedavg")))

    monkeypatch.setitem(STUDIES, "two", two)
    store = Store(tmp_path)
    for spec in study_specs("two", "lite"):
        if spec.clients == 7 or spec.seed == 0:
            write_record(synthetic_record(spec), store.folder("two", "lite"))
    table = missing_table(collect("two", "lite", {}, store))
    assert table.columns.tolist() == ["5 clients"]
    assert table["5 clients"].to_dict() == {("cora", "Local, own test nodes"): 2, ("cora", "FedAvg"): 2}


def test_settings_list_every_value_in_the_order_of_the_runs():
    methods = ({"name": "fgssl", "tau": 0.2}, "fedavg", {"name": "fgssl", "tau": 0.1})
    runs = zip(methods, (2, 0, 1), (64, 16, 64), strict=True)
    specs = [RunSpec.parse({"method": m, "seed": seed, "hidden": hidden}) for m, seed, hidden in runs]
    table = settings_table(Results("", "lite", specs, {}))
    shown = ["seed", "hidden", "local epochs", "FGSSL: tau"]
    assert table.loc[shown, "value"].tolist() == ["2, 0, 1", "64, 16", "4", "0.2, 0.1"]
    assert not {"dataset", "clients", "method", "FGSSL: name", "FedAvg: name"} & set(table.index)
