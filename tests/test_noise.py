"""The noise floor: one source of chance moves alone; deviations; a method against itself."""

import numpy as np
import pytest
from executed import run_here
from scipy import stats
from synthetic import synthetic_record

from fgl_core.study.catalogue import study_specs
from fgl_core.study.execute import execute
from fgl_core.study.results import collect
from fgl_core.study.spec import NoiseSpec, RunSpec
from fgl_core.study.store import write_record
from fgl_core.tables import noise

KARATE = {"dataset": "karate", "clients": 2, "rounds": 2, "method": "fgssl", "hidden": 8}


def drawn(**changes):
    """Who holds what and what is for testing; the loss of the first round, which initial weights decide."""
    record = execute(RunSpec.parse(KARATE | changes), dtype="float64")
    return record["partition"]["hash"], record["curves"]


def test_only_what_varies_is_drawn_anew():
    plain, curves = drawn()
    for varies in ("partition", "split", "init", "training", "run"):
        # the same other seed: nothing is drawn anew
        assert drawn(task="noise", varies=varies, other=0) == (plain, curves)
        clients, other = drawn(task="noise", varies=varies, other=5)
        assert (clients != plain) == (varies in ("partition", "split"))
        assert other != curves
    assert drawn(task="noise", varies="init", other=5) != drawn(task="noise", varies="run", other=5)
    # all four at once are another seed
    spec = RunSpec.parse(KARATE | {"task": "noise", "varies": "split", "other": 7, "seed": 3})
    assert spec.streams.numpy("split").random() == RunSpec.parse({"seed": 7}).streams.numpy("split").random()
    for purpose in ("partition", "dropout", "init"):
        mine, plain = spec.streams.numpy(purpose), RunSpec.parse({"seed": 3}).streams.numpy(purpose)
        assert mine.random() == plain.random()


SHIFT = {"partition": 0.02, "split": 0.01, "init": 0.004, "training": 0.001}


def accuracy(spec):
    """A draw moves both methods by its number times its source's shift, FGSSL's split twice as far."""
    value = 0.6 + 0.05 * (spec.method.name == "fgssl")
    if not isinstance(spec, NoiseSpec):
        return round(value + 0.03 * spec.seed, 5)
    if spec.varies == "run":
        return round(value + 0.03 * spec.seed + (0.01, -0.03)[spec.seed % 2], 5)
    twice = 2 if (spec.varies, spec.method.name) == ("split", "fgssl") else 1
    return round(value + spec.other * twice * SHIFT[spec.varies], 5)


@pytest.fixture
def results(home):
    for spec in study_specs("fgssl-noise", "lite", {"dataset": ["cora"]}):
        write_record(synthetic_record(spec, accuracy(spec)), home.folder("fgssl-noise", "lite"))
    return collect("fgssl-noise", "lite", {"dataset": ["cora"]}, home)


def test_deviations_by_source_count_the_run_of_seed_zero_as_a_draw(results):
    found = noise.spreads_by_source(results).set_index(["source", "what"])
    six = np.arange(6)  # seed 0 and five others
    for source, shift in SHIFT.items():
        assert found["std"][source, "FedAvg"] == pytest.approx(np.std(shift * six, ddof=1))
        assert found["n"][source, "FedAvg"] == 6
    assert found["std"]["split", "FGSSL"] == pytest.approx(2 * found["std"]["split", "FedAvg"])
    # what moves both alike cancels in the difference
    assert found["std"]["partition", noise.DIFFERENCE] == pytest.approx(0, abs=1e-9)
    assert found["std"]["split", noise.DIFFERENCE] == pytest.approx(np.std(0.01 * six, ddof=1))
    assert found["std"]["all", "FedAvg"] == pytest.approx(0.03) and found["n"]["all", "FedAvg"] == 3
    assert list(dict.fromkeys(noise.spreads_by_source(results)["source"])) == list(noise.SOURCES)


def test_the_interval_of_a_deviation_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    intervals = [noise.deviation_interval(list(rng.normal(0, 2, 5)))[1:] for _ in range(2000)]
    assert np.mean([low < 2 < high for low, high in intervals]) == pytest.approx(0.95, abs=0.015)
    assert np.isnan(noise.deviation_interval([0.5])).all()


def test_a_method_against_itself_is_paired_by_seed(results):
    (row,) = noise.same_against_same(results).to_dict("records")
    assert row["dataset"] == "cora" and row["pairs"] == 3
    differences = [0.01, -0.03, 0.01]
    assert row["difference"] == pytest.approx(np.mean(differences))
    assert row["p"] == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)


def test_what_seeds_can_decide_falls_with_their_number_and_unpaired_costs_more(results):
    frame = noise.decidable(results).set_index("what")
    unpaired = frame.loc["FedAvg against a method, unpaired"]
    assert all(np.diff([unpaired[seeds] for seeds in noise.SEEDS]) < 0)
    # by simulation: a true difference of this size is found four times out of five
    rng, std = np.random.default_rng(1), np.sqrt(2) * 0.03
    draws = rng.normal(unpaired[5], std, (4000, 5))
    assert np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.02)


def test_the_page_shows_sources_a_method_against_itself_and_what_is_missing(results, home):
    text = run_here("beyond/noise.ipynb", profile="lite", dataset="cora")
    assert (
        "3.00 [" in text and "-0.33 [" in text and "unpaired" in text and "0 of 49 runs are missing" in text
    )
    empty = run_here("beyond/noise.ipynb", profile="lite", dataset="citeseer")
    assert "missing" in empty and "49 of 49 runs are missing" in empty
