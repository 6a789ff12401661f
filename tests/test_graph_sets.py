"""Tables and figures of sets of graphs and of traffic, from records with known numbers."""

from __future__ import annotations

import pandas as pd
import pytest
from synthetic import synthetic_record

from fgl_core import plots
from fgl_core.analysis.graph_statistics import DEGREES, PERCENTILES
from fgl_core.datasets import SETTINGS
from fgl_core.datasets.registry import entries
from fgl_core.study.catalogue import study_specs
from fgl_core.study.results import collect
from fgl_core.study.store import Store, write_record
from fgl_core.tables.graph_sets import (
    PUBLISHED,
    between_frame,
    published_frame,
    published_table,
    set_frame,
    share_frame,
    spread_frame,
)
from fgl_core.tables.traffic import traffic_frame, traffic_table


def record(spec):
    """A set of 200 graphs, 150 of them of one class, with 30 nodes and 45 edges on average."""
    degrees = [0.0] * len(DEGREES)
    degrees[2], degrees[5] = 0.75, 0.25
    spread = {"mean": 30.0, "percentiles": list(range(10, 10 + len(PERCENTILES)))}
    triangle = {"nodes": 4, "rings": 1, "labels": [0, 0, 1, 9], "edges": [[0, 1], [0, 2], [1, 2]]}
    return {
        "format": 1,
        "spec": spec.model_dump(mode="json"),
        "digest": spec.digest,
        "revision": spec.revision,
        "status": "done",
        "statistics": {
            "graphs": 200,
            "features": 3,
            "class_counts": [150, 50],
            "per_graph": {
                **dict.fromkeys(("nodes", "degree", "rings"), spread),
                "edges": spread | {"mean": 45.0},
            },
            "degrees": {"columns": list(DEGREES), "mean": degrees, "low": degrees, "high": degrees},
            "feature_means": {"columns": [0, 2], "mean": [0.9, 0.0], "low": [0.8, 0.0], "high": [1.0, 0.0]},
            "between": {"degree": {"share": 0.5, "chance": 0.125}, "features": None},
            "drawn": {"eligible": 9, "graphs": [triangle] * 4},
        },
    }


@pytest.fixture
def results(tmp_path):
    """MUTAG has a record, BZR has none."""
    store, only = Store(tmp_path), {"dataset": ["MUTAG", "BZR"]}
    write_record(record(study_specs("fedcch-datasets", "paper", only)[0]), store.folder("sets", "paper"))
    return collect("fedcch-datasets", "paper", only, store)


def test_every_set_is_in_both_studies_and_published():
    assert [spec.dataset for spec in study_specs("fedcch-datasets", "lite")] == list(SETTINGS["ALL"])
    assert list(PUBLISHED) == list(SETTINGS["ALL"])
    whole = {spec.digest for spec in study_specs("fedcch-datasets", "paper")}
    assert {spec.digest for spec in study_specs("fedcch-fig1", "paper")} < whole


def test_published_counts_are_the_registrys_but_for_collabs_self_loops():
    found = {}
    for name, (graphs, classes, nodes, edges) in PUBLISHED.items():
        counts = entries()[name].counts
        assert (counts["graphs"], counts["classes"]) == (graphs, classes)
        assert round(counts["nodes"] / graphs, 2) == nodes, name
        found[name] = round(counts["edges"] / graphs, 2) - edges
    assert [name for name, more in found.items() if abs(more) > 1e-9] == ["COLLAB"]


def test_a_row_per_set_and_nothing_where_there_is_no_record(results):
    mutag, bzr = set_frame(results).to_dict("records")
    assert mutag["domain"] == bzr["domain"] == "molecules"
    assert [mutag[name] for name in ("graphs", "classes", "nodes", "edges")] == [200, 2, 30, 45]
    assert (mutag["smallest"], mutag["largest"], mutag["point"]) == (0.25, 0.75, 1 / 20)
    assert pd.isna(bzr["graphs"]) and pd.isna(bzr["point"])


def test_what_differs_from_the_published_counts_is_marked(results):
    frame = published_frame(results).set_index(["dataset", "count"])
    assert frame["differs"].to_dict() == {
        ("MUTAG", "graphs"): True,
        ("MUTAG", "classes"): False,
        ("MUTAG", "nodes"): True,
        ("MUTAG", "edges"): True,
        **{("BZR", count): False for count in ("graphs", "classes", "nodes", "edges")},
    }
    html = published_table(results).to_html()
    assert "≠ 200" in html and "≠ 30.00" in html and "188" in html and "≠ 2<" not in html
    assert html.count("≠") == 3 and "font-weight: bold" in html


def test_spreads_shares_and_variances(results):
    spread = spread_frame(results, "rings").set_index("dataset")
    assert (spread.loc["MUTAG", 0], spread.loc["MUTAG", 50], spread.loc["MUTAG", 100]) == (10, 14, 18)
    assert spread.loc["BZR"].drop("measure").isna().all()
    degrees = share_frame(results, "degrees")
    assert list(degrees["column"]) == ["2", "5–8"]  # degrees that no node has are left out
    assert list(share_frame(results, "feature_means")["column"]) == ["0", "2"]
    between = between_frame(results).set_index("dataset")
    assert tuple(between.loc["MUTAG", ["degree", "chance"]]) == (0.5, 0.125)
    assert between["features"].isna().all() and between.loc["BZR"].isna().all()


def test_figures_show_every_set_and_say_what_is_missing(results):
    figure = plots.spreads(spread_frame(results, "nodes", "rings"), {"nodes": "Nodes", "rings": "Rings"})
    upper, lower = figure.axes
    assert (upper.get_title("left"), lower.get_title("left")) == ("Nodes", "Rings")
    assert [label.get_text() for label in upper.get_yticklabels()] == ["MUTAG", "BZR"]
    assert "missing" in [text.get_text() for text in lower.texts]
    (bars,) = plots.share_bars(share_frame(results, "degrees"), "Degree", "Share").axes
    assert [bar.get_height() for bar in bars.patches] == [0.75, 0.25]
    empty = plots.share_bars(share_frame(results, "degrees")[:0], "Degree", "Share")
    assert "no record yet" in [text.get_text() for text in empty.axes[0].texts]


def test_drawings_have_a_dot_per_node_and_a_line_per_edge():
    graphs = record(study_specs("fedcch-datasets", "paper")[0])["statistics"]["drawn"]["graphs"]
    figure = plots.graph_drawings({"MUTAG": graphs})
    drawn = [axes for axes in figure.axes if axes.get_title()]
    assert len(drawn) == 4 and {axes.get_title() for axes in drawn} == {"MUTAG, 1 ring"}
    for axes in drawn:
        assert len(axes.lines) == 3 and len(axes.collections[0].get_offsets()) == 4
        assert len({tuple(colour) for colour in axes.collections[0].get_facecolors()}) == 3
    assert "no record yet" in [text.get_text() for text in plots.graph_drawings({}).axes[1].texts]


def test_traffic_is_per_client_and_round_and_a_mean_over_seeds(tmp_path):
    store, only = Store(tmp_path), {"setting": ["CHEM"]}
    for spec in study_specs("fedcch-fig4", "lite", only):
        if spec.method.signature != "cosine":
            sent = {"model": [7000 + 700 * spec.seed] * spec.rounds, "signature": [56] * spec.rounds}
            ledger = {"bytes": {"up": sent, "down": {"model": [1400] * spec.rounds}}}
            write_record(synthetic_record(spec) | ledger, store.folder("fedcch-fig4", "lite"))
    results = collect("fedcch-fig4", "lite", only, store)
    frame = traffic_frame(results, lambda spec: "shared" if spec.share_norm else spec.method.signature)
    assert set(frame["method"]) == {"average", "shared"} and set(frame["clients"]) == {7}
    part = frame[frame["method"] == "shared"].set_index(["way", "kind"])["bytes"]
    assert part.to_dict() == {("up", "model"): 1050, ("up", "signature"): 8, ("down", "model"): 200}
    html = traffic_table(frame).to_html()
    assert "1.050" in html and "0.008" in html and html.index("signature") < html.index("0.200")
