"""The claim ledger: from records to numbers, verdicts and the page that shows them."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from executed import run_here
from scipy import stats
from synthetic import synthetic_record

from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.grid import Scale, grid
from fgl_core.study.store import Store, write_record
from fgl_core.tables.claims import Claim, load_claims
from fgl_core.tables.ledger import Ledger, average, counts, details, open_ledger, summary
from fgl_core.tables.quantities import QUANTITIES
from fgl_core.tables.statistics import Interval, holm

ROOT = Path(__file__).parents[1]
STUDY = "few-methods"
CLAIM = {
    "id": "c",
    "paper": "P",
    "place": "Section 1, Table 1",
    "short": "A is better",
    "text": "A is better than B.",
}
CLAIM |= {"study": STUDY, "pairs": (("FGSSL", "FedAvg"),), "page": "notebooks/fgssl/table1.ipynb"}
SEEDS = {"lite": 2, "paper": 5, "power": 8}


@pytest.fixture(autouse=True)
def few_methods(monkeypatch):
    def few(profile):
        """Three methods."""
        clients = (5, 7) if profile != "power" else (5,)
        scale = Scale(
            ("cora", "citeseer"), clients, SEEDS.get(profile, 2), rounds=10 if profile == "lite" else 20
        )
        return grid(scale, ({"method": name} for name in ("fedavg", "fedprox", "fgssl")))

    def alike(profile):
        """Clients whose models are compared."""
        scale = Scale(("cora",), (20,), SEEDS.get(profile, 2), rounds=4)
        return grid(
            scale, ({"task": "heterogeneity", "method": name} for name in ("local", "fedavg", "fgssl"))
        )

    monkeypatch.setitem(STUDIES, STUDY, few)
    monkeypatch.setitem(STUDIES, "alike", alike)
    monkeypatch.delenv("FGL_PROFILE", raising=False)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def claim(**changes):
    return Claim(**{**CLAIM, **changes})


def fill(store, accuracy, profile="paper", study=STUDY, **changes):
    """Write a record of each run for which ``accuracy`` gives a value."""
    for spec in study_specs(study, profile):
        if (value := accuracy(spec)) is not None:
            data = synthetic_record(spec, round(value, 5))
            extra = changes["of"](spec) if "of" in changes else {}
            write_record(data | extra, store.folder(study, profile))


def finding(store, profile="auto", **changes):
    (found,) = Ledger([claim(**changes)], profile, store).findings
    return found


NOISE = (0.0, 0.001, -0.001, 0.002, -0.002, 0.001, -0.001, 0.0)


def shifted(gain, seeds=range(8)):
    """FedAvg and FedProx at 80 %, FGSSL above it by ``gain`` of its place, with a little noise by seed."""

    def accuracy(spec):
        if spec.seed not in seeds:
            return None
        if spec.method.name != "fgssl":
            return 0.8
        return 0.8 + (gain(spec) if callable(gain) else gain) + NOISE[spec.seed]

    return accuracy


def test_a_gain_in_every_cell_is_reproduced(store):
    fill(store, shifted(0.02))
    found = finding(store)
    assert found.ruling.verdict == "reproduced" and len(found.cells) == 4 and set(found.cells["pairs"]) == {5}
    oracle = stats.ttest_1samp([0.02 + noise for noise in NOISE[:5]], 0)
    assert found.cells["p"].tolist() == pytest.approx([oracle.pvalue] * 4)
    assert found.cells["p_holm"].tolist() == pytest.approx([4 * oracle.pvalue] * 4)
    # all cells have the same differences, so that their mean over cells has the interval of each
    low, high = (100 * bound for bound in oracle.confidence_interval(0.95))
    assert found.number == f"+2.0 [{low:+.1f}, {high:+.1f}]"


def test_gains_in_most_cells_and_a_loss_in_one(store):
    def gain_or(loss):
        return lambda spec: 0.02 if spec.dataset == "cora" or spec.clients == 5 else loss

    for loss, verdict in ((-0.0005, "partly"), (-0.02, "not reproduced")):
        fill(store, shifted(gain_or(loss)))
        assert finding(store).ruling.verdict == verdict
    assert "4 of 4 cells have runs, 3 clearly above 0, 1 clearly below" in details([finding(store)], ".")
    assert finding(store, places=("cora",)).ruling.verdict == "reproduced"


def test_missing_seeds_leave_it_undecided_and_show_what_there_is(store):
    fill(store, shifted(0.02, seeds=range(4)))
    found = finding(store)
    assert found.ruling == ("undecided", "4 of 4 cells lack runs")
    assert found.number.startswith("part: +2.0 [") and found.cells["missing"].tolist() == [2] * 4
    fill(store, lambda spec: shifted(0.02)(spec) if spec.dataset == "cora" else None)
    assert finding(store).ruling == ("undecided", "2 of 4 cells lack runs")
    assert "2 of 4 cells have runs, 2 clearly above 0" in details([finding(store)], "notebooks")


def test_only_lite_is_a_hint(store):
    fill(store, shifted(0.02), "lite")
    found = finding(store)
    # 2.0 and 2.1 points: a standard error of 0.05 and a quantile of 12.7
    assert found.ruling.verdict == "undecided" and found.number == "hint: +2.0 [+1.4, +2.7]"
    text = details([found], "notebooks")
    assert "- **undecided**: 4 of 4 cells lack runs." in text and "a hint from `lite`, which decides" in text
    assert (
        finding(store, "lite").number == found.number and finding(store, "lite").ruling.verdict == "undecided"
    )
    assert finding(store, "paper").number == "no runs"
    stamp = Ledger([claim()], "auto", store).stamp()
    assert stamp.startswith(f"Studies `{claim().study}`. ")
    assert "Profile lite gives hints: 24 of 24 runs recorded." in stamp and "paper decides: 0 of 60" in stamp


def test_power_decides_where_it_is_complete(store):
    fill(store, shifted(0.02))
    fill(store, shifted(0.03), "power")
    cells = finding(store).cells.set_index(["place", "clients"])
    assert cells["profile"].to_dict() == {
        ("cora", 5): "power", ("cora", 7): "paper", ("citeseer", 5): "power", ("citeseer", 7): "paper"
    }  # fmt: skip
    assert cells.loc[("cora", 5), "pairs"] == 8 and cells.loc[("cora", 7), "pairs"] == 5
    (path,) = store.folder(STUDY, "power").glob("cora-m5-fgssl-s7-*.json")
    path.unlink()
    assert finding(store).cells.set_index(["place", "clients"]).loc[("cora", 5), "profile"] == "paper"


def test_runs_that_diverged_are_left_out_and_counted(store):
    def diverged(spec):
        broken = spec.method.name == "fgssl" and spec.seed in (0, 1) and spec.clients == 5
        return {"status": "diverged", "reason": "x", "best": None, "last": None} if broken else {}

    fill(store, shifted(0.02), of=diverged)
    found = finding(store)
    assert found.cells["pairs"].tolist() == [3, 5, 3, 5] and found.cells["diverged"].tolist() == [2, 0, 2, 0]
    assert found.ruling.verdict == "reproduced" and "Runs that diverged: 4." in details([found], ".")

    def almost_all(spec):
        return diverged(spec) if spec.seed < 2 else {**diverged(spec), "status": "failed", "reason": "x"}

    fill(store, shifted(0.02), of=lambda spec: almost_all(spec) if spec.dataset == "cora" else {})
    assert finding(store).ruling.verdict == "undecided"


def test_a_baseline_that_diverged_takes_its_pair_with_it(store):
    def diverged(spec):  # after some rounds, so that there are curves and a best round
        broken = spec.method.name == "fedavg" and spec.seed == 1 and spec.dataset == "cora"
        return {"status": "diverged", "reason": "x"} if broken else {}

    fill(store, shifted(0.02), of=diverged)
    for measure in ("accuracy", "accuracy over all rounds"):
        found = finding(store, measure=measure)
        assert found.cells["pairs"].tolist() == [4, 4, 5, 5], measure
        assert found.cells["diverged"].tolist() == [1, 1, 0, 0], measure


def test_equal_differences_prove_nothing(store):
    fill(store, lambda spec: 0.82 if spec.method.name == "fgssl" else 0.8)
    found = finding(store)
    assert found.cells["p_holm"].isna().all() and found.ruling.verdict == "partly"
    assert found.number == "+2.0"  # no interval without a spread
    assert finding(store, kind="equivalence").ruling.verdict == "not reproduced"


def test_no_difference_is_tested_against_a_margin_of_a_point(store):
    fill(store, shifted(0.002))
    found = finding(store, kind="equivalence")
    values = [0.002 + noise for noise in NOISE[:5]]
    p = max(
        stats.ttest_1samp(values, 0.01, alternative="less").pvalue,
        stats.ttest_1samp(values, -0.01, alternative="greater").pvalue,
    )
    assert found.cells["within"].tolist() == pytest.approx(holm([p] * 4))
    assert found.ruling.verdict == "reproduced"
    assert "4 surely within a point, 0 surely outside" in details([found], ".")
    fill(store, shifted(0.03))
    assert finding(store, kind="equivalence").ruling.verdict == "not reproduced"


def test_cells_that_share_no_two_seeds_have_a_mean_and_no_interval():
    mean = average(pd.DataFrame({"by_seed": [{0: 0.01, 1: 0.03}, {1: 0.05, 2: 0.06, 3: 0.07}]}))
    assert mean.mean == pytest.approx((0.02 + 0.06) / 2)  # every cell counts once, however many seeds it has
    assert (mean.low, mean.high, mean.n) == (-math.inf, math.inf, 1)


def test_the_number_is_that_of_the_weakest_pair(store):
    level = {"fgssl": 0.83, "fedprox": 0.82, "fedavg": 0.80}
    fill(
        store, lambda spec: level[spec.method.name] + (NOISE[spec.seed] if spec.method.name == "fgssl" else 0)
    )
    pairs = (("FGSSL", "FedAvg"), ("FGSSL", "FedProx"))
    found = finding(store, pairs=pairs)
    assert len(found.cells) == 8 and found.number.startswith("+1.0 [")
    assert "(FGSSL against FedProx, the weakest)" in details([found], ".")
    assert finding(store, pairs=pairs, kind="equivalence").number.startswith("+3.0 [")
    around = (("FGSSL", "FedProx"), ("FedAvg", "FGSSL"))  # one point above, three below
    assert finding(store, pairs=around, kind="equivalence").number.startswith("-3.0 [")


def test_rounds_saved_are_paired_by_seed(store):
    # a synthetic run climbs evenly in 20 rounds: it reaches FedAvg's 0.5 in round ceil(20 · 0.5 / end)
    ends = {"fgssl": (0.8, 0.7, 0.6, 0.8, 0.4), "fedavg": [0.5] * 5}
    fill(store, lambda spec: ends[spec.method.name][spec.seed] if spec.method.name in ends else None)
    found = finding(store, measure="rounds", claimed=100.0)
    assert found.cells["by_seed"][0] == {0: 7, 1: 5, 2: 3, 3: 7, 4: -1}  # 13, 15, 17, 13, never: 21
    assert found.number.startswith("+4.2 [") and found.number.endswith(" rounds")
    assert found.ruling.verdict == "partly"  # 4.2 of a standard error of 1.5, before Holm's correction


def test_curves_are_compared_by_their_mean(store):
    fill(store, shifted(0.02))
    found = finding(store, measure="accuracy over all rounds")
    # an even climb to a in 20 rounds has the mean a · 10.5 / 20
    assert found.cells["difference"].tolist() == pytest.approx([0.02 * 10.5 / 20] * 4, abs=1e-5)


def test_bytes_from_the_ledger(store):
    def sent(spec):
        row = [1000 * spec.clients] * spec.rounds
        more = {"norm": [50 * spec.clients] * spec.rounds} if spec.method.name == "fedavg" else {}
        return {"bytes": {"up": {"model": row}, "down": {"model": row} | more}}

    fill(store, lambda spec: 0.8 if spec.seed == 0 else None, of=sent)
    saved = finding(store, kind="cheaper", measure="bytes")
    assert saved.ruling.verdict == "reproduced" and saved.number == "part: +0.050 kB"
    same = {"pairs": (("FGSSL", "FedProx"),), "measure": "bytes"}
    assert finding(store, kind="cheaper", **same).ruling.verdict == "not reproduced"
    assert finding(store, kind="no dearer", **same).ruling.verdict == "reproduced"


def test_likeness_of_models_and_graphs(store):
    likeness = {"local": 0.3, "fedavg": 0.6, "fgssl": 0.7}

    def rising(spec):  # what counts is how alike models are in the end
        end = likeness[spec.method.name] + NOISE[spec.seed]
        pairs = synthetic_record(spec)["heterogeneity"]
        return {"heterogeneity": pairs | {"mean_cka": [0.1, 0.1, 0.2, end]}}

    fill(store, lambda spec: 0.8, study="alike", of=rising)

    def alone(measure):
        return finding(store, study="alike", measure=measure, pairs=(("Local, own test nodes",),))

    assert finding(store, study="alike", measure="CKA").cells["difference"].tolist() == pytest.approx([0.1])
    assert alone("1 − CKA").cells["difference"].tolist() == pytest.approx([0.7])
    # synthetic graphs are 0.2 apart; walks of 5 steps are of 52 kinds, Bell's number
    chance = math.sqrt((52 - 1) / (4 * 20_000 * math.log(2)))
    assert alone("distance above chance").cells["difference"].tolist() == pytest.approx([0.2 - chance])


def test_a_number_that_rounds_to_zero_has_no_sign():
    points = QUANTITIES["accuracy"]
    assert points.text(Interval(-0.0004, -0.0124, 0.0116, 0.5, 3)) == "+0.0 [-1.2, +1.2] points"
    assert points.text(Interval(-0.0004, -math.inf, math.inf, math.nan, 1), brief=True) == "+0.0"


def test_the_profile_is_that_of_the_environment_unless_one_is_named(monkeypatch):
    assert open_ledger().profile == "auto"
    monkeypatch.setenv("FGL_PROFILE", "smoke")
    assert open_ledger().profile == "smoke" and open_ledger("lite").profile == "lite"


def test_tables_in_markdown(store):
    fill(store, shifted(0.02))
    not_run = claim(id="d", study="alike", measure="1 − CKA", pairs=(("Local, own test nodes",),))
    findings = Ledger([claim(), not_run], "auto", store).findings
    table = summary(findings, "notebooks").replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert table[2].startswith("| A is better | +2.0 [") and "**reproduced**" in table[2]
    assert table[2].endswith("| [Table 1](fgssl/table1.ipynb) |")
    assert table[3] == "| A is better | no runs | undecided | [Table 1](fgssl/table1.ipynb) |"
    assert counts(findings).loc["P"].tolist() == [1, 0, 0, 1]


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_without_any_record(home):
    text = plain(run_here("claims.ipynb"))
    claims = load_claims()
    assert text.count("| no runs | undecided |") == len(claims)
    assert "fgl study run fgssl-table1 --profile paper: 375 of 375 runs" in text
    assert "[Table 1](fgssl/table1.ipynb)" in text and "nan" not in text
    for each in claims:
        assert each.short in text and each.text in text and each.place in text


@pytest.mark.parametrize("profile", ["smoke", "lite", "paper", "power"])
def test_the_page_under_each_profile(home, profile):
    specs = study_specs("fgssl-table2", profile, {"dataset": ["cora"]} if profile == "power" else None)
    for spec in specs:
        seeded = NOISE[spec.seed % 8]
        record = synthetic_record(spec, 0.8 + (0.02 + seeded if spec.method.name == "fgssl" else 0))
        write_record(record, home.folder("fgssl-table2", profile))
    text = plain(run_here("claims.ipynb", profile=profile))
    decided = profile == "paper"  # in power, cells lack runs
    assert ("| **not reproduced** | [Table 2]" in text) == decided  # both are not better than FNSC alone
    assert ("hint: +0.0" in text) == (profile in ("smoke", "lite"))
    assert f"Profile {profile}" in text and "nan" not in text


def test_the_page_is_the_first_chapter_and_the_introduction_leads_to_it():
    assert (ROOT / "_toc.yml").read_text().index("notebooks/claims") < (ROOT / "_toc.yml").read_text().index(
        "notebooks/start/quickstart"
    )
    assert "(../notebooks/claims.ipynb)" in (ROOT / "book" / "intro.md").read_text()
