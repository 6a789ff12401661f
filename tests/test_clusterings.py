"""Who was averaged with whom, and the page about it: from records that hold known clusters and signatures."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from executed import run, run_here
from matplotlib import pyplot as plt
from scipy.cluster.hierarchy import linkage
from synthetic import synthetic_record

from fgl_core import plots
from fgl_core.signature import cluster, hash_similarity, linkage_tree
from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.fedcch import Scale, grid
from fgl_core.study.results import Results, collect
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Store, write_record
from fgl_core.tables.cells import comparison
from fgl_core.tables.clusterings import (
    FEDCCH,
    clustering_rounds,
    company,
    factors,
    handed_on,
    last_signatures,
    variant,
    warm_up_note,
)
from fgl_core.tables.sweeps import with_fields

PAGE = "fedcch/hash-and-clusters.ipynb"
GAINS = {"1 cluster": -0.02, "cosine, no hash": 0.01, "clusters by chance": -0.03, "3 clusters": 0.02}


def bits_of(spec):
    """Signatures of a run's clients, bool [m, 64], that its seed draws."""
    return np.random.default_rng(spec.seed).random((len(spec.datasets), 64)) < 0.5


def record_of(spec, clusters=None, **changes):
    """A finished run: accuracy by variant, thousandths by seed, clusters as a tree of its bits gives them."""
    bits = bits_of(spec)
    labels = cluster(hash_similarity(bits)).tolist() if clusters is None else clusters
    shift = {0: 0.001, 1: -0.001}.get(spec.seed, 0) * (1 + (variant(spec) != FEDCCH))
    record = synthetic_record(spec, round(0.7 + GAINS.get(variant(spec), 0) + shift, 5))
    clients = [
        {**client, "name": name, "dataset": name}
        for client, name in zip(record["partition"]["clients"], spec.datasets, strict=True)
    ]
    rounds = [labels] * spec.rounds if clusters is None else clusters
    packed = [np.packbits(row).tobytes().hex() for row in bits]
    notes = {"clusters": rounds}
    if spec.method.signature != "cosine":
        notes["signatures"] = [packed if number < 10 else None for number in range(spec.rounds)]
    return record | {"partition": {**record["partition"], "clients": clients}, "notes": notes} | changes


def fill(store, specs, profile="lite", **changes):
    for spec in specs:
        write_record(record_of(spec, **changes), store.folder("fedcch-hash", profile))


def spec_of(setting="MUTAG,BZR,ENZYMES,DD", rounds=4, seed=0, common_start=True, **parameters):
    method = {"name": "fedcch", **parameters}
    return RunSpec.parse(
        {"setting": setting, "rounds": rounds, "seed": seed, "common_start": common_start, "method": method}
    )


def results_of(store, monkeypatch, specs):
    monkeypatch.setitem(STUDIES, "fedcch-hash", lambda profile: specs)
    return collect("fedcch-hash", "lite", {}, store)


def rand_index(first, second):
    """The adjusted Rand index by counting pairs (Hubert and Arabie 1985)."""
    pairs = list(combinations(range(len(first)), 2))
    one = {pair for pair in pairs if first[pair[0]] == first[pair[1]]}
    two = {pair for pair in pairs if second[pair[0]] == second[pair[1]]}
    expected = len(one) * len(two) / len(pairs)
    return (len(one & two) - expected) / ((len(one) + len(two)) / 2 - expected)


@pytest.mark.parametrize(
    ("parameters", "name", "factor"),
    [
        ({}, "FedCCH", ""),
        ({"signature": "perceptual"}, "pHash", "hash"),
        ({"signature": "cosine"}, "cosine, no hash", "hash"),
        ({"signature": "wavelet"}, "wHash", "hash"),
        ({"clustering": "kmeans"}, "k-means", "linkage"),
        ({"clustering": "single"}, "single linkage", "linkage"),
        ({"clustering": "complete"}, "complete linkage", "linkage"),
        ({"clusters": 1}, "1 cluster", "number"),
        ({"clusters": 3}, "3 clusters", "number"),
        ({"cluster_every": 10}, "every 10 rounds", "frequency"),
        ({"cluster_every": 0}, "first round only", "frequency"),
        ({"clustering": "random"}, "clusters by chance", "control"),
        ({"clustering": "domain"}, "clusters by domain", "control"),
        ({"signature": "difference", "unit_order": 1}, "dHash, shuffled units", "control"),
        ({"common_start": False}, "own starts", "control"),
    ],
)
def test_a_run_is_named_after_what_it_changes(parameters, name, factor):
    spec = spec_of(**parameters)
    assert variant(spec) == name
    assert factors(Results("", "lite", [spec], {})) == {name: factor}


def test_the_study_changes_one_thing_at_a_time():
    specs = study_specs("fedcch-hash", "lite", {"seed": [0]})
    assert {spec.setting for spec in specs} == {"CHEM"}
    (base,) = [spec for spec in specs if variant(spec) == FEDCCH]
    plain = base.method.model_dump() | {"common_start": True}
    for spec in specs:
        fields = spec.method.model_dump() | {"common_start": spec.common_start}
        changed = {name for name in fields if fields[name] != plain[name]}
        assert len(changed - {"unit_order"}) <= 1 and len({*changed, "unit_order"}) <= 2, variant(spec)
    assert sorted(spec.method.clusters for spec in specs if spec.method.clusters) == [*range(1, 8)]
    assert len({variant(spec) for spec in specs}) == len(specs)
    smoke = study_specs("fedcch-hash", "smoke")
    assert set(factors(Results("", "smoke", smoke, {})).values()) == {
        "", "hash", "linkage", "number", "frequency", "control",
    }  # fmt: skip


def test_rounds_count_clusters_and_agreements(home, monkeypatch):
    spec = spec_of()
    clusters = [[0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 0, 1], [0, 0, 0, 0]]
    fill(home, [spec], clusters=clusters)
    frame = clustering_rounds(results_of(home, monkeypatch, [spec, spec_of(seed=1)]))
    assert list(frame["round"]) == [1, 2, 3, 4] and set(frame["seed"]) == {0}
    assert list(frame["number"]) == [2, 3, 2, 1]
    molecules = [0, 0, 1, 1]  # and bioinformatics
    assert list(frame["domains"]) == pytest.approx([rand_index(molecules, labels) for labels in clusters])
    expected = [rand_index(a, b) for a, b in pairwise(clusters)]
    assert np.isnan(frame["previous"][0]) and list(frame["previous"][1:]) == pytest.approx(expected)
    assert frame["domains"][0] == 1 and frame["domains"][2] == pytest.approx(-0.5)


def test_one_domain_is_nothing_to_agree_with(home, monkeypatch):
    spec = spec_of(setting="MUTAG,BZR,COX2")
    fill(home, [spec])
    assert clustering_rounds(results_of(home, monkeypatch, [spec]))["domains"].isna().all()
    assert clustering_rounds(results_of(home, monkeypatch, [spec_of()])).empty


def test_signatures_are_those_of_the_last_round_that_has_some(home, monkeypatch):
    first, second = spec_of(rounds=12), spec_of(rounds=12, seed=1)
    other = spec_of(rounds=12, signature="difference")
    fill(home, [first, second, other])
    results = results_of(home, monkeypatch, [first, second, other])
    sent = last_signatures(results, seed=1)
    assert (sent.setting, sent.seed, sent.round) == (first.setting, 1, 10)
    assert sent.clients == ["MUTAG", "BZR", "ENZYMES", "DD"]
    np.testing.assert_array_equal(sent.bits, bits_of(second))
    np.testing.assert_array_equal(sent.clusters, cluster(sent.similarity))
    differing = (bits_of(second)[0] != bits_of(second)[3]).sum()
    assert sent.similarity[0, 3] == pytest.approx(1 - differing / 64)
    assert sent.between.shape == (6,) and sent.tree.shape == (3, 4)
    assert last_signatures(results, seed=7).seed == 0  # the first that there is
    nothing = last_signatures(results_of(home, monkeypatch, [spec_of()]), seed=0)
    assert nothing.clients == [] and nothing.tree is None and len(nothing.between) == 0


def with_notes(spec, clusters, bits):
    """A finished run whose rounds have clusters and signatures, bool [m, 64], of their own; None for none."""
    packed = [None if one is None else [np.packbits(row).tobytes().hex() for row in one] for one in bits]
    return record_of(spec) | {"notes": {"clusters": clusters, "signatures": packed}}


def write(store, *records):
    for record in records:
        write_record(record, store.folder("fedcch-hash", "lite"))


def test_the_last_signatures_have_the_clusters_of_their_own_round(home, monkeypatch):
    spec = spec_of()
    bits = np.random.default_rng(0).random((2, 4, 64)) < 0.5
    clusters = [[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 2, 3], [0, 0, 1, 1]]
    write(home, with_notes(spec, clusters, [bits[0], bits[1], None, None]))
    sent = last_signatures(results_of(home, monkeypatch, [spec]), seed=0)
    assert sent.round == 2 and sent.clusters.tolist() == clusters[1]
    np.testing.assert_array_equal(sent.bits, bits[1])
    agreement = {(i, j): (bits[1][i] == bits[1][j]).mean() for i, j in combinations(range(4), 2)}
    assert sent.between.tolist() == pytest.approx(list(agreement.values()))
    apart = 1 - np.array(list(agreement.values()))
    np.testing.assert_allclose(sent.tree, linkage(apart, "average"))
    assert (sent.tree[:, 2] != linkage(apart, "single")[:, 2]).any()


def test_neither_another_variant_nor_another_setting_stands_for_fedcch(home, monkeypatch):
    groups = {
        spec_of(signature="difference"): [0, 1, 1, 0],
        spec_of(): [0, 0, 1, 1],
        spec_of(setting="MUTAG,BZR,ENZYMES", seed=1): [0, 1, 1],  # the seed is to be had here alone
    }
    for spec, labels in groups.items():
        bits = np.tile(np.array(labels, bool)[:, None], 64)
        write(home, with_notes(spec, [labels] * 4, [bits, None, None, None]))
    results = results_of(home, monkeypatch, list(groups))
    sent, together = last_signatures(results, seed=1), company(results, seed=1)
    assert (sent.setting, sent.seed) == (together.setting, together.seed) == ("MUTAG,BZR,ENZYMES,DD", 0)
    assert sent.clusters.tolist() == [0, 0, 1, 1] and sent.bits[:, 0].tolist() == [False, False, True, True]
    assert together.groups.tolist() == [[0, 0, 1, 1]] * 4
    rounds = clustering_rounds(results).drop_duplicates(["dataset", "method", "name", "clients"])
    assert rounds[["dataset", "method", "name", "clients"]].values.tolist() == [
        ["MUTAG,BZR,ENZYMES,DD", "dHash", "fedcch", 4],
        ["MUTAG,BZR,ENZYMES,DD", "FedCCH", "fedcch", 4],
        ["MUTAG,BZR,ENZYMES", "FedCCH", "fedcch", 3],
    ]


def test_records_of_the_repository_repeat_their_clusters():
    committed = {"setting": ["CHEM"], "method": ["fedcch"]}
    records = Store().available("lite")
    found = [
        records[s.digest] for s in study_specs("fedcch-table1", "lite", committed) if s.digest in records
    ]
    if not found:
        pytest.skip("no record of FedCCH on CHEM")
    for record in found:
        for labels, packed in zip(
            *(record.data["notes"][k] for k in ("clusters", "signatures")), strict=True
        ):
            if packed is not None:
                bits = np.unpackbits(
                    [np.frombuffer(bytes.fromhex(text), np.uint8) for text in packed], axis=1
                )
                assert cluster(hash_similarity(bits)).tolist() == labels


def test_gcfl_is_said_to_be_fedavg_where_its_warm_up_does_not_end():
    def note(profile, **only):
        return warm_up_note(Results("", profile, study_specs("fedcch-table1", profile, only), {}))

    assert "before round 21, and these runs have 20 rounds" in note("lite")
    assert "have 1 round:" in note("smoke")
    assert "ends before" in note("paper")
    assert "No run of GCFL" in note("lite", method=["local"])
    plus = RunSpec.parse({"setting": "MUTAG,BZR", "rounds": 7, "method": {"name": "gcfl+", "warm_up": 9}})
    assert "before round 10, and these runs have 7 rounds" in warm_up_note(Results("", "lite", [plus], {}))


@pytest.mark.parametrize("m", [0, 1, 2, 5, 12])
def test_the_tree_is_in_line_with_the_matrix(m):
    bits = np.random.default_rng(m).random((m, 64)) < 0.5
    similarity = hash_similarity(bits)
    labels = cluster(similarity) if m else np.empty(0, int)
    names = [f"client {number}" for number in range(m)]
    figure = plots.client_tree(names, similarity, linkage_tree(similarity) if m > 1 else None, labels)
    figure.draw_without_rendering()
    left, right = figure.axes[:2]
    if m == 0:
        assert "no record yet" in [text.get_text() for text in right.texts]
    else:
        order = [int(text.get_text().split()[1]) for text in right.get_yticklabels()]
        assert sorted(order) == list(range(m))
        drawn = np.ma.filled(right.collections[0].get_array().astype(float), np.nan).reshape(m, m)
        off = ~np.eye(m, dtype=bool)
        np.testing.assert_allclose(drawn[off], similarity[np.ix_(order, order)][off])
        assert len(right.patches) == len(set(labels))  # clusters are neighbours in the tree
    if m > 2:
        (cut,) = [line.get_xdata()[0] for line in left.get_lines()]
        assert (linkage_tree(similarity)[:, 2] > cut).sum() == len(set(labels)) - 1
        assert left.get_ylim()[0] > left.get_ylim()[1]  # the first leaf is on top, as the matrix has it
    plt.close(figure)


def test_the_numbers_of_clusters_and_the_choice_are_drawn(home):
    specs = study_specs("fedcch-hash", "lite")
    fill(home, [spec for spec in specs if variant(spec) != "4 clusters"])
    results = collect("fedcch-hash", "lite", {}, home)
    cells = comparison(results, FEDCCH, label=variant)
    fixed = cells[cells["method"].str.contains(r"^\d clusters?$")]
    fixed = with_fields(fixed, results, "clusters", label=variant)
    rounds = clustering_rounds(results)
    rounds = rounds[rounds["method"] == FEDCCH]
    figure = plots.cluster_numbers(fixed, cells[cells["method"] == FEDCCH], rounds)
    figure.draw_without_rendering()
    above, below = figure.axes
    line = above.containers[0].lines[0]
    assert list(line.get_xdata()) == [1, 2, 3, 4, 5, 6, 7]
    assert line.get_ydata()[2] == pytest.approx(72) and np.isnan(line.get_ydata()[3])
    (diamond,) = [one for one in above.get_lines() if one.get_marker() == "D"]
    assert diamond.get_xdata()[0] == pytest.approx(rounds["number"].mean())
    assert diamond.get_ydata()[0] == pytest.approx(70)
    assert sum(bar.get_height() for bar in below.patches) == pytest.approx(100)
    assert "missing" in [text.get_text() for text in above.texts]
    plt.close(figure)


def test_a_group_hands_its_number_on_to_the_one_that_shares_most_of_it():
    labels = [
        [0, 0, 0, 1, 1, 2],
        [0, 1, 1, 0, 0, 0],  # the first holds what was the second, the second what is left of the first
        [0, 1, 2, 3, 3, 3],  # only three are left together
        [0, 0, 1, 2, 3, 3],  # a new group of two, and two of the three
    ]
    expected = [[0, 0, 0, 1, 1, -1], [1, 0, 0, 1, 1, 1], [-1, -1, -1, 1, 1, 1], [0, 0, -1, -1, 1, 1]]
    assert handed_on(np.array(labels)).tolist() == expected
    together = np.array(labels)[:, :, None] == np.array(labels)[:, None, :]
    numbers = handed_on(np.array(labels))
    same = (numbers[:, :, None] == numbers[:, None, :]) & (numbers >= 0)[:, :, None]
    assert (same | np.eye(6, dtype=bool) == together).all()  # renumbered, never regrouped
    assert handed_on(np.arange(3)[None]).tolist() == [[-1, -1, -1]]


def test_a_group_that_was_apart_for_a_while_has_its_number_again():
    labels = [[0, 0, 1, 1], [0, 1, 2, 3], [0, 1, 2, 2]]
    assert handed_on(np.array(labels)).tolist() == [[0, 0, 1, 1], [-1] * 4, [-1, -1, 1, 1]]


def test_company_is_that_of_the_run_with_the_seed(home, monkeypatch):
    rounds = [[0, 0, 1, 1], [0, 1, 1, 0], [0, 1, 2, 3], [0, 0, 0, 0]]
    specs = [spec_of(seed=seed) for seed in (0, 1)]
    results = results_of(home, monkeypatch, specs)
    assert company(results, 0).clients == []
    fill(home, specs[1:], clusters=rounds)
    found = company(results_of(home, monkeypatch, specs), 0)  # seed 0 has no record
    assert (found.setting, found.seed) == ("MUTAG,BZR,ENZYMES,DD", 1)
    assert found.clients == ["MUTAG", "BZR", "ENZYMES", "DD"]
    assert found.groups.tolist() == handed_on(np.array(rounds)).tolist()

    figure = plots.company_bands(found.clients, found.groups)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == found.clients
    (image,) = axes.images
    assert (image.get_array() == found.groups.T).all() and image.get_extent()[:2] == [0.5, 4.5]
    plt.close(figure)
    empty = plots.company_bands([], np.empty((0, 0), int))
    assert "no record yet" in [text.get_text() for text in empty.axes[0].texts]
    plt.close(empty)


def test_the_page_with_every_record(home, tmp_path):
    specs = study_specs("fedcch-hash", "lite")
    fill(home, specs)
    text, pictures = run(PAGE, tmp_path, profile="lite", seed=1)
    assert f"Profile lite: {len(specs)} of {len(specs)} runs shown" in text
    assert "+1.0 [" in text and "-2.0 [" in text and "+2.0 [" in text
    assert "missing" not in text.replace("missing: str", "") and "Nothing: every run is recorded." in text
    assert "CHEM, seed 1, round 10" in text and "as the server noted them" in text
    assert "**hash − cosine**: on average -1.0 points" in text
    assert "**signatures − chance**: on average +3.0 points" in text
    assert "control: clusters by chance; clusters by domain; pHash, shuffled units" in text
    assert len(pictures) == 6


def test_the_page_without_any_record(home):
    text = run_here(PAGE, profile="lite")
    assert "Profile lite: 0 of" in text and "`fgl study run fedcch-hash --profile lite` fills them" in text
    assert "missing" in text and "No signatures yet." in text and "No runs yet." in text
    assert "nothing can be said yet" in text


def test_the_page_with_some_records_and_runs_that_diverged(home):
    specs = study_specs("fedcch-hash", "paper", {"setting": ["BIO-CV"], "seed": [0, 1]})
    fill(home, [spec for spec in specs if spec.seed == 0 or variant(spec) == FEDCCH], "paper")
    broken = {"status": "diverged", "reason": "the loss is inf", "best": None, "last": None, "notes": {}}
    fill(home, [spec for spec in specs if variant(spec) == "pHash"], "paper", **broken)
    text = run_here(PAGE, profile="paper", setting="BIO-CV")
    assert "BIO-CV, seed 0, round 10" in text and "CHEM" not in text.replace("-p setting CHEM", "")
    assert "missing" in text and "--only setting=BIO-CV" in text
    whole = run_here(PAGE, profile="paper", setting=["BIO-CV", "CHEM"])
    assert "CHEM" in whole and "BIO-CV" in whole


def test_the_page_under_smoke(home, monkeypatch):
    monkeypatch.setenv("FGL_PROFILE", "smoke")
    specs = study_specs("fedcch-hash", "smoke")
    fill(home, specs, "smoke")
    text = run_here(PAGE)
    assert f"Profile smoke: {len(specs)} of {len(specs)} runs shown" in text
    assert not home.results.exists()


def test_table1_says_where_gcfl_is_fedavg(home):
    text = run_here("fedcch/table1.ipynb", profile="lite", setting="CHEM")
    assert "**GCFL is FedAvg here.**" in text
    assert "ends before its runs do" in run_here("fedcch/table1.ipynb", profile="paper", setting="CHEM")


def test_a_scale_of_two_settings_has_one_choice_each():
    specs = grid(Scale(("CHEM", "BIO-CV"), seeds=1, rounds=1), ({"method": "gcfl"},))
    assert [spec.method.epsilon_2 for spec in specs] == [0.28, 0.4]
