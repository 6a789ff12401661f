"""Records on disk: what is written can be read, what is foreign is left out, nothing is half written."""

import json
import os
import warnings

import pytest
from synthetic import synthetic_record

from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.study import store as store_module
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import (
    Record,
    RecordWarning,
    Store,
    check_writable,
    format_record,
    read_record,
    write_record,
)


@pytest.fixture
def spec():
    return RunSpec.parse(
        {"dataset": "digits-knn", "clients": 3, "rounds": 5, "method": {"name": "fgssl", "tau": 0.2}}
    )


def test_a_record_comes_back_as_it_was_written(spec, tmp_path):
    data = synthetic_record(spec)
    path = write_record(data, tmp_path / "data" / "results" / "some-study")
    assert path.name == f"{spec.slug}.json"
    record = read_record(path)
    assert record.data == data and record.spec == spec and record.settled and not record.stale
    assert Store(tmp_path).load()[spec.digest].path == path


def test_one_line_per_curve_and_small(tmp_path):
    long = RunSpec.parse({"dataset": "pubmed", "clients": 10, "rounds": 200, "method": "local"})
    text = format_record(synthetic_record(long))
    assert json.loads(text)["curves"]["loss"]
    assert sum('"test_accuracy": [' in line for line in text.splitlines()) == 1
    assert max(map(len, text.splitlines())) < 12_000
    assert len(text.encode()) < 40 * 1024


def test_found_whatever_study_computed_it(spec, tmp_path):
    store = Store(tmp_path)
    write_record(synthetic_record(spec), store.folder("one-study", "lite"))
    assert spec.digest in store.available("paper")
    assert store.folder("one-study", "smoke") == store.runs
    assert store.load(store.runs) == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text, data: text[: len(text) // 2], "not valid JSON"),
        (lambda text, data: "[1, 2]", "no JSON object"),
        (lambda text, data: "[" * 100_000, "."),
        (lambda text, data: json.dumps(data | {"format": 2}), "format is 2"),
        (lambda text, data: json.dumps(data | {"mood": "good"}), "unknown fields: mood"),
        (lambda text, data: json.dumps(data | {"digest": "0" * 64}), "digest does not match"),
        (lambda text, data: json.dumps(data | {"spec": data["spec"] | {"lr": 0.7}}), "digest does not match"),
        (
            lambda text, data: json.dumps(data | {"spec": data["spec"] | {"colour": 1}}),
            "unknown parameter 'colour'",
        ),
        (lambda text, data: json.dumps(data | {"spec": "cora"}), "spec is no JSON object"),
        (lambda text, data: json.dumps(data | {"status": "fine"}), "status is 'fine'"),
        (lambda text, data: json.dumps({k: v for k, v in data.items() if k != "best"}), "lacks one of"),
        (lambda text, data: json.dumps({k: v for k, v in data.items() if k != "spec"}), "it lacks spec"),
        (lambda text, data: json.dumps(data | {"last": {"round": 5}}), "its last round lacks test_accuracy"),
        (lambda text, data: json.dumps(data | {"timing": None}), "its timing: input should be"),
        (
            lambda text, data: json.dumps(data | {"environment": {"date": 3}}),
            "its environment.date: input should be",
        ),
        (
            lambda text, data: json.dumps(data | {"last": {"loss": float("nan")}}),
            "its last.loss.*: input should be a finite",
        ),
        (lambda text, data: json.dumps(data | {"curves": {"loss": ["0.1"]}}), "its curves.loss"),
        (lambda text, data: json.dumps(data | {"bytes": {"up": {"model": [1]}}}), "numbers of rounds"),
        (lambda text, data: json.dumps(data | {"spec": {"task": []}}), r"unknown task \[\]"),
        (lambda text, data: json.dumps(data | {"spec": {"method": {"name": {}}}}), "unknown method {}"),
    ],
)
def test_what_is_no_record_is_skipped_by_name_and_others_are_kept(spec, tmp_path, change, why):
    store = Store(tmp_path)
    data = synthetic_record(spec)
    write_record(data, store.folder("a-study", "lite"))
    bad = store.results / "a-study" / "bad.json"
    bad.write_text(change(format_record(data), data))
    with pytest.warns(RecordWarning, match=why) as caught:
        found = store.load()
    assert list(found) == [spec.digest]
    assert str(bad) in str(caught[0].message) and "\n" not in str(caught[0].message)


def test_bytes_that_are_no_text_are_skipped(tmp_path):
    (tmp_path / "noise.json").write_bytes(b"\xff\xfe\x00")
    with pytest.warns(RecordWarning, match="noise.json"):
        assert read_record(tmp_path / "noise.json") is None


def test_a_field_added_to_the_spec_later_keeps_older_records(spec):
    data = synthetic_record(spec)
    older = {name: value for name, value in data["spec"].items() if name != "keep_unlabelled"}
    stored = json.dumps(older, sort_keys=True, separators=(",", ":")).encode()
    record = Record.parse(data | {"spec": older, "digest": store_module.sha256(stored).hexdigest()})
    assert record.spec.digest == spec.digest


def test_another_revision_is_stale(spec, tmp_path, monkeypatch):
    record = Record.parse(synthetic_record(spec))
    monkeypatch.setattr(METHODS["fgssl"], "revision", METHODS["fgssl"].revision + 1)
    assert record.stale and not record.settled


def test_of_two_records_the_settled_and_newer_one_counts(spec, tmp_path):
    store = Store(tmp_path)
    old, new = synthetic_record(spec, 0.7), synthetic_record(spec, 0.9, date="2027-01-01T00:00:00+00:00")
    failed = {**old, "status": "failed", "environment": {"date": "2030-01-01T00:00:00+00:00"}}
    for study, data in (("a", new), ("b", old), ("c", failed)):
        write_record(data, store.folder(study, "lite"))
    assert store.load()[spec.digest].data["best"]["test_accuracy"] == 0.9


def test_a_write_that_fails_leaves_nothing_and_keeps_the_old(spec, tmp_path, monkeypatch):
    path = write_record(synthetic_record(spec, 0.7), tmp_path)
    before = path.read_text()

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match="No space left"):
        write_record(synthetic_record(spec, 0.8), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name] and path.read_text() == before


def test_half_written_drafts_are_not_read(spec, tmp_path):
    (tmp_path / f".{spec.slug}-123.tmp").write_text("{")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Store(tmp_path).load(tmp_path) == {}


def test_a_folder_that_cannot_be_written_is_an_input_error(tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot write to .*FGL_HOME"):
        check_writable(tmp_path / "data" / "runs")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_an_input_error(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            check_writable(tmp_path / "runs")
    finally:
        tmp_path.chmod(0o700)
