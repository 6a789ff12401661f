"""The claims of the papers: a file that is checked, and verdicts by fixed rules."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from fgl_core.errors import InputError
from fgl_core.tables.claims import Claim, load_claims, rule
from fgl_core.tables.ledger import Ledger

ROOT = Path(__file__).parents[1]
CLAIM = {"id": "c", "paper": "P", "place": "Section 1", "short": "A is better", "text": "A is better than B."}
CLAIM |= {"study": "fgssl-table1", "pairs": (("FGSSL", "FedAvg"),), "page": "notebooks/fgssl/table1.ipynb"}


def claim(**changes):
    return Claim(**{**CLAIM, **changes})


ROW = {"place": "cora", "missing": 0, "pairs": 5, "difference": 0.02, "detectable": 0.01, "p_holm": 0.01}
ROW |= {"within": 0.9, "outside": 0.9}


def ruling(*rows, **changes):
    return rule(claim(**changes), pd.DataFrame([ROW | row for row in rows]))


CLEAR, POSITIVE = {}, {"p_holm": 0.2, "difference": 0.005}
NEGATIVE, WORSE = {"p_holm": 0.2, "difference": -0.005}, {"p_holm": 0.01, "difference": -0.02}
EQUAL = {"p_holm": math.nan, "difference": 0.0, "detectable": math.nan}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([CLEAR, CLEAR], "reproduced"),
        ([CLEAR, POSITIVE], "partly"),
        ([CLEAR, POSITIVE, NEGATIVE], "partly"),
        ([POSITIVE, NEGATIVE], "not reproduced"),  # half is not most
        ([CLEAR, CLEAR, WORSE], "not reproduced"),
        ([CLEAR, EQUAL], "not reproduced"),
        ([CLEAR, CLEAR, EQUAL], "partly"),  # without a spread there is no p-value, and no proof
        ([CLEAR, {"missing": 1}], "undecided"),
        ([WORSE, {"missing": 1}], "undecided"),
        ([CLEAR, {"pairs": 1}], "undecided"),  # all but one diverged
        ([{"p_holm": 0.05}], "partly"),
    ],
)
def test_superiority(rows, verdict):
    assert ruling(*rows).verdict == verdict


def test_how_many_cells_lack_runs():
    assert ruling(CLEAR, CLEAR, {"missing": 1}) == ("undecided", "1 of 3 cells lacks runs")


def test_a_claimed_difference_that_could_not_be_found_is_undecided():
    blurred = POSITIVE | {"detectable": 0.03}
    assert ruling(CLEAR, blurred, claimed=2.0) == ("undecided", "too few seeds to find it")
    assert ruling(CLEAR, blurred, claimed=4.0).verdict == "partly"
    assert ruling(CLEAR, blurred, claimed={"citeseer": 2.0}).verdict == "partly"
    assert ruling(CLEAR, blurred | {"place": "citeseer"}, claimed={"citeseer": 2.0}).verdict == "undecided"
    # what was found was large enough to be found, and so is what was found to be the other way round
    assert ruling({"detectable": 0.03}, claimed=2.0).verdict == "reproduced"
    assert ruling(WORSE, blurred, claimed=2.0).verdict == "not reproduced"
    # only where nothing clear was found does it matter what could have been
    found = {"detectable": 0.03}
    assert ruling(found, found, POSITIVE, claimed=2.0).verdict == "partly"


WITHIN, OUTSIDE = {"within": 0.01, "difference": 0.001}, {"outside": 0.01, "difference": 0.05}
NEAR, FAR = {"difference": 0.004, "detectable": 0.008}, {"difference": 0.015, "detectable": 0.008}


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([WITHIN, WITHIN], "reproduced"),
        ([WITHIN | {"p_holm": 0.001}], "reproduced"),  # a difference, and a small one
        ([WITHIN, NEAR], "partly"),
        ([WITHIN, FAR], "not reproduced"),
        ([WITHIN, FAR | {"difference": -0.015}], "not reproduced"),  # as far off on the other side
        ([WITHIN, OUTSIDE], "not reproduced"),
        ([WITHIN, NEAR | {"detectable": 0.02}], "undecided"),  # so many seeds cannot show a point
        ([WITHIN, {"missing": 2}], "undecided"),
    ],
)
def test_equivalence(rows, verdict):
    assert ruling(*rows, kind="equivalence").verdict == verdict


@pytest.mark.parametrize(
    ("kind", "saved", "verdict"),
    [
        ("cheaper", [0.5, 0.1], "reproduced"),
        ("cheaper", [0.5, 0.0], "not reproduced"),
        ("no dearer", [0.5, 0.0], "reproduced"),
        ("no dearer", [0.5, -0.1], "not reproduced"),
    ],
)
def test_what_travels_is_counted(kind, saved, verdict):
    rows = [EQUAL | {"difference": value, "pairs": 1, "missing": 3} for value in saved]
    assert ruling(*rows, kind=kind, measure="bytes").verdict == verdict
    assert ruling(*rows, {"pairs": 0}, kind=kind, measure="bytes").verdict == "undecided"


@pytest.mark.parametrize("kind", ["superiority", "equivalence", "cheaper", "no dearer"])
def test_a_claim_without_cells_is_undecided(kind):
    measure = "bytes" if kind in ("cheaper", "no dearer") else "accuracy"
    assert rule(claim(kind=kind, measure=measure), pd.DataFrame([ROW])[:0]).verdict == "undecided"


def test_the_book_s_claims_are_sound():
    claims = load_claims()
    assert {each.paper for each in claims} == {"FGSSL", "FedCCH"}
    assert [each.id for each in claims if len(each.short.split()) > 12] == []
    text = (ROOT / "book" / "claims.toml").read_text(encoding="utf-8")
    assert not re.search(r"^verdict", text, re.MULTILINE)
    for each in claims:
        assert each.id.startswith(each.paper.lower()) and each.text.endswith("."), each.id


WRONG = [
    ("study = ", "study: field required"),  # left out
    ('study = "fgssl-tabel1"', "unknown study 'fgssl-tabel1': did you mean 'fgssl-table1'"),
    ('pairs = [["FGSLS", "FedAvg"]]', "unknown row of fgssl-table1 'FGSLS': did you mean 'FGSSL'"),
    ('page = "notebooks/fgssl/table9.ipynb"', "there is no page notebooks/fgssl/table9.ipynb"),
    ('places = ["corra"]', "unknown dataset or setting of fgssl-table1 'corra': did you mean 'cora'"),
    ("claimed = { CHEM = 1.0 }", "unknown dataset or setting of fgssl-table1 'CHEM'"),
    ('measure = "acuracy"', "unknown measure 'acuracy'"),  # codespell:ignore
    ('kind = "better"', "kind: input should be 'superiority', 'equivalence', 'cheaper' or 'no dearer'"),
    ('verdict = "reproduced"', "verdict: extra inputs are not permitted"),
    ('pairs = [["FGSSL"]]', "name two rows in each"),
    ('measure = "1 − CKA"', "name one row in each"),
    ('kind = "cheaper"', "does not go with the measure accuracy"),
    ('kind = "equivalence"\nmeasure = "rounds"', "name a measure in points"),
]


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_a_claim_that_names_what_does_not_exist(tmp_path, line, message):
    fields = {"id": '"x"', "paper": '"P"', "place": '"Section 1"', "short": '"s"', "text": '"t."'}
    fields |= {"study": '"fgssl-table1"', "pairs": '[["FGSSL", "FedAvg"]]'}
    fields |= {"page": '"notebooks/fgssl/table1.ipynb"'}
    for changed in line.splitlines():
        key, _, value = changed.partition(" = ")
        fields[key] = value
    root = tmp_path / "project"
    page = root / "notebooks" / "fgssl" / "table1.ipynb"
    page.parent.mkdir(parents=True)
    (root / "book").mkdir()
    for file in (page, root / "_toc.yml"):
        file.touch()
    path = root / "book" / "claims.toml"
    lines = (f"{key} = {value}" for key, value in fields.items() if value)
    path.write_text("[[claim]]\n" + "\n".join(lines), "utf-8")
    with pytest.raises(InputError) as error:
        load_claims(path)
    assert str(error.value).startswith("claims.toml, claim x: ") and message in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_hold_no_claims(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text("[[claim")
    with pytest.raises(InputError, match="cannot be read"):
        load_claims(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_claims(tmp_path / "nowhere.toml")
    with pytest.raises(InputError, match="did you mean 'paper'"):
        Ledger([], "papr")


def test_the_same_id_twice(tmp_path):
    path = tmp_path / "book" / "claims.toml"
    path.parent.mkdir()
    entry = '[[claim]]\nid = "x"\npaper = "P"\nplace = "1"\nshort = "s"\ntext = "t"\npage = "p"\n'
    entry += 'study = "fgssl-table1"\npairs = [["FGSSL", "FedAvg"]]\n'
    path.write_text(entry + entry)
    with pytest.raises(InputError, match="its id is taken"):
        load_claims(path)
