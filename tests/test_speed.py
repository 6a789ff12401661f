"""What the benchmarks measured, as the speed page reads it, and what studies cost."""

from __future__ import annotations

import json

import pytest
from synthetic import synthetic_record

from fgl_core import plots
from fgl_core.errors import InputError
from fgl_core.study.catalogue import study_specs
from fgl_core.study.store import Store, write_record
from fgl_core.tables import speed


def write_results(root, name, rows):
    folder = root / "benchmarks" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    data = {"machine": {"cpu": "A core", "python": "3.11", "torch": "2"}, "rows": rows}
    (folder / f"{name}.json").write_text(json.dumps(data))


def test_results_come_with_the_machine_and_what_is_missing_is_named(root):
    with pytest.raises(InputError, match="python -m benchmarks node"):
        speed.measured("node")
    write_results(root, "node", [{"dataset": "cora", "ratio": 4.0}])
    frame, machine = speed.measured("node")
    assert frame.to_dict("records") == [{"dataset": "cora", "ratio": 4.0}]
    assert machine == "A core; python 3.11, torch 2"


def test_the_workload_nearest_to_its_limit_comes_first(root):
    same = {"gflop": 1.0, "gbyte": 2.0, "gflop_per_second": 170.0, "gbyte_per_second": 30.0}
    far = {"limit_seconds": 0.1, "calls_seconds": 0.4, "seconds": 0.9, "ratio": 9.0}
    near = {"limit_seconds": 0.5, "calls_seconds": 0.1, "seconds": 1.0, "ratio": 2.0}
    write_results(root, "limit", [{"workload": "far"} | same | far, {"workload": "near"} | same | near])
    found = speed.distances()
    assert found.index.tolist() == ["near", "far"]
    assert found.loc["far"].to_dict() == {
        "ratio": 9.0,
        "measured, s": 0.9,
        "limit, s": 0.1,
        "calls, s": 0.4,
        "Gflop": 1.0,
        "GB": 2.0,
        "Gflop/s": 170.0,
        "GB/s": 30.0,
    }


def test_ratios_and_growth_are_ready_to_draw(root):
    row = {
        "plain_seconds": 4.0,
        "package_seconds": 1.0,
        "ratio": 4.0,
        "ratio_lowest": 3.0,
        "ratio_highest": 5.0,
    }
    write_results(
        root,
        "graphs",
        [{"dataset": "NCI1", "method": "local", **row}, {"dataset": "NCI1", "method": "fedstar", **row}],
    )
    frame, table = speed.ratios("graphs")
    assert frame["label"].tolist() == table.index.tolist() == ["NCI1", "NCI1, FedStar"]
    assert table.columns.tolist() == ["plain seconds", "package seconds", "ratio"]
    rows = [
        {"axis": axis, "dataset": name, "method": "fedavg", "at": at, "seconds": seconds, "peak_mib": 500}
        for axis, name, at, seconds in (
            ("clients", "cora", 5, 1.0),
            ("nodes", "cora", 2708, 1.0),
            ("nodes", "invented", 200_000, 9.0),
        )
    ]
    write_results(root, "growth", rows)
    assert speed.growth()["at"].tolist() == [5, 2708, 200_000]


def test_what_two_workers_gain_is_told_with_their_start_and_without(root):
    rows = [
        {"work": "matrix products", "workers": 1, "seconds": 0.4},
        {"work": "matrix products", "workers": 2, "seconds": 0.2},
        {"work": "copies", "workers": 1, "seconds": 3.0},
        {"work": "copies", "workers": 2, "seconds": 2.0},
        {"work": "runs", "workers": 1, "seconds": 91.0, "start": 1.0},
        {"work": "runs", "workers": 2, "seconds": 56.0, "start": 6.0},
    ]
    write_results(root, "workers", rows)
    gains = {"matrix products": 2.0, "copies": 1.5, "runs": 91 / 56, "runs, started": 90 / 50}
    assert speed.two_workers() == pytest.approx(gains)


def test_what_subnormal_numbers_cost_is_told_by_what_became_of_them(root):
    rows = [
        {"subnormal": "kept", "first_seconds": 2.0, "last_seconds": 5.0, "share": 0.07},
        {"subnormal": "zero", "first_seconds": 2.5, "last_seconds": 2.5, "share": 0.0},
    ]
    write_results(root, "late", rows)
    assert speed.slower_in_the_end() == (0.07, {"kept": 2.5, "zero": 1.0})


def test_costs_are_those_of_the_records_and_a_guess_is_called_one(root):
    write_results(
        root, "footprint", [{"data": "cora", "peak_mib": 512}, {"data": "pubmed", "peak_mib": 1024}]
    )
    store = Store()
    lite = study_specs("fgssl-fig3", "lite")
    for spec in lite:  # one second a local epoch
        record = synthetic_record(spec)
        record["timing"]["seconds_per_round"] = 1.0 * spec.local_epochs
        write_record(record, store.folder("fgssl-fig3", "lite"))
    with pytest.raises(InputError, match=r"^jobs is 0: choose at least 1$"):
        speed.cost_table(jobs=0)
    table = speed.cost_table(jobs=2)
    seconds = sum(spec.rounds * spec.local_epochs for spec in lite) / 2
    assert table.loc["fgssl-fig3", "lite"] == f"54 runs, {seconds / 3600:.1f} h"
    assert table.loc["fgssl-table1", "lite"].startswith("150 runs, about ")
    assert table.loc["fgssl-table1", "memory of a worker"] == "1.0 GiB"  # Pubmed's, of the paper profile
    assert table.loc["fgssl-fig3", "memory of a worker"] == ""  # Citeseer was not measured
    assert table.loc["fgssl-fig3", "download"] == "1 MB"


def test_the_figures_show_every_row():
    import pandas as pd

    ratios = pd.DataFrame(
        {"label": ["a", "b"], "ratio": [2.0, 8.0], "ratio_lowest": [1.5, 7.0], "ratio_highest": [3.0, 9.0]}
    )
    axes = plots.ratio_dots(ratios).axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b"]
    assert axes.lines[0].get_xdata().tolist() == [2.0, 8.0]
    rows = [
        {"axis": axis, "method": method, "at": at, "seconds": at / 10, "peak_mib": 100 * at}
        for axis in ("clients", "nodes")
        for method in ("fedavg", "fgssl")
        for at in (5, 10)
    ]
    figure = plots.growth_lines(pd.DataFrame(rows), {"clients": "clients", "nodes": "nodes"})
    assert len(figure.axes) == 4 and all(len(panel.lines) == 2 for panel in figure.axes)
    assert figure.axes[1].lines[0].get_ydata().tolist() == [500 / 1024, 1000 / 1024]
