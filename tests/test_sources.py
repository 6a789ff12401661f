"""Where bytes come from, and what happens when they are not the right ones."""

from __future__ import annotations

import hashlib
import os
import pickle
import zipfile
from pathlib import Path

import pytest
from planetoid import FOLDER, damage, everything, raw, write_citeseer

from fgl_core.datasets import registry, sources, transfer
from fgl_core.datasets.checks import check_zip, zip_members
from fgl_core.datasets.citation import load_citation
from fgl_core.errors import InputError
from fgl_core.root import project_root


@pytest.fixture
def made(root):
    """A dataset in the cache."""
    return write_citeseer(root / "data" / "raw")


@pytest.fixture
def mirrored(root, tmp_path, monkeypatch):
    """A dataset in a mirror, and an empty cache."""
    monkeypatch.setenv("FGL_DATA_MIRROR", str(tmp_path / "mirror"))
    return write_citeseer(tmp_path / "mirror")


# the root


def test_root_is_fgl_home_then_the_nearest_registry_then_the_user_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FGL_HOME", str(tmp_path / "mine"))
    assert project_root() == tmp_path / "mine"
    monkeypatch.delenv("FGL_HOME")
    (tmp_path / "checkout" / "data").mkdir(parents=True)
    (tmp_path / "checkout" / "data" / "registry.toml").write_text("")
    (tmp_path / "checkout" / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout" / "deep" / "er")
    assert project_root() == tmp_path / "checkout"
    monkeypatch.chdir(tmp_path)
    assert project_root() == Path(registry.__file__).resolve().parents[2]  # the package lies in a checkout
    monkeypatch.setattr("fgl_core.root.MARK", Path("data", "no such registry"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    assert project_root() == tmp_path / "cache" / "fgl_core"


def test_root_that_is_a_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FGL_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="FGL_HOME is not a folder"):
        project_root()


# cache and mirror


def test_cache_is_used_without_any_other_source(made, monkeypatch):
    monkeypatch.setattr(transfer, "copy", lambda *args: pytest.fail("copied"))
    paths, source = sources.obtain(made.entry)
    assert source == "cache" and [path.name for path in paths] == [file.name for file in made.entry.files]


def test_mirror_is_copied_into_the_cache(root, mirrored):
    moved = []
    paths, source = sources.obtain(mirrored.entry, lambda *event: moved.append(event))
    assert source == "mirror" and all(path.is_relative_to(raw(root)) for path in paths)
    assert everything(raw(root)) == sorted(f"{FOLDER}/{file.name}" for file in mirrored.entry.files)
    assert {label for label, _, _ in moved} == {file.name for file in mirrored.entry.files}
    assert all(done <= total for _, done, total in moved)
    assert sources.obtain(mirrored.entry)[1] == "cache"


def test_mirror_brings_only_what_the_cache_lacks(root, mirrored):
    sources.obtain(mirrored.entry)
    lost = raw(root) / FOLDER / "ind.citeseer.graph"
    lost.unlink()
    moved = set()
    sources.obtain(mirrored.entry, lambda label, *_: moved.add(label))
    assert moved == {"ind.citeseer.graph"} and lost.exists()


@pytest.mark.parametrize("what", ["missing", "file"])
def test_mirror_that_is_no_folder_is_refused_before_anything_else(made, tmp_path, monkeypatch, what):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FGL_DATA_MIRROR", str(tmp_path / what))
    for use in (lambda: sources.obtain(made.entry), sources.data_status, lambda: load_citation(made.entry)):
        with pytest.raises(InputError, match="FGL_DATA_MIRROR is not a folder"):
            use()


def test_empty_mirror_is_passed_over(root, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("FGL_DATA_MIRROR", str(tmp_path / "empty"))
    with pytest.raises(InputError, match=r"mirror: .*empty/planetoid/cora/raw/ind.cora.x is not there"):
        sources.obtain(registry.entry("cora"))


@pytest.mark.parametrize("name", ["cora", "MUTAG"])
def test_no_network_and_no_mirror_says_how_to_get_the_data(root, name):
    with pytest.raises(InputError) as error:
        sources.fetch([name])
    message = str(error.value)
    assert "\n" not in message and f"cannot get {name}" in message
    for advice in ("FGL_DATA_MIRROR", str(raw(root)), f"fgl data fetch {name}"):
        assert advice in message
    assert not root.exists()


# damaged files


@pytest.mark.parametrize("how", ["truncated", "longer", "changed", "empty"])
def test_damaged_file_in_the_cache_is_named_and_kept_aside(made, root, how):
    victim = raw(root) / FOLDER / "ind.citeseer.allx"
    damage(victim, how)
    bad = victim.read_bytes()
    known = next(file for file in made.entry.files if file.name == victim.name)
    with pytest.raises(InputError) as error:
        load_citation(made.entry)
    message = str(error.value)
    assert "\n" not in message and str(victim) in message
    assert known.sha256 in message and hashlib.sha256(bad).hexdigest() in message
    assert not victim.exists()
    assert victim.with_name("ind.citeseer.allx.corrupt").read_bytes() == bad


def test_damaged_file_is_fetched_anew_the_next_time(root, mirrored):
    sources.obtain(mirrored.entry)
    victim = raw(root) / FOLDER / "ind.citeseer.y"
    good = victim.read_bytes()
    for number in (1, 2):
        damage(victim, "truncated")
        with pytest.raises(InputError, match="is damaged"):
            sources.obtain(mirrored.entry)
        sources.obtain(mirrored.entry)
        assert victim.read_bytes() == good
        assert len(list(victim.parent.glob("ind.citeseer.y.corrupt*"))) == number


def test_damaged_file_that_cannot_be_moved_is_still_named(made, root, monkeypatch):
    victim = raw(root) / FOLDER / "ind.citeseer.y"
    damage(victim, "changed")

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(transfer, "set_aside", refuse)
    with pytest.raises(InputError, match=r"could not be moved aside \(Permission denied\)"):
        sources.obtain(made.entry)
    assert victim.exists()


def test_file_that_cannot_be_read_is_named(made, root):
    victim = raw(root) / FOLDER / "ind.citeseer.y"
    victim.unlink()
    victim.mkdir()
    with pytest.raises(InputError, match=r"ind\.citeseer\.y cannot be read"):
        sources.obtain(made.entry)


def test_damaged_file_in_the_mirror_is_named_and_left_alone(root, mirrored, tmp_path):
    victim = tmp_path / "mirror" / FOLDER / "ind.citeseer.tx"
    damage(victim, "truncated")
    with pytest.raises(InputError) as error:
        load_citation(mirrored.entry)
    known = next(file for file in mirrored.entry.files if file.name == victim.name)
    assert str(victim) in str(error.value) and known.sha256 in str(error.value)
    assert hashlib.sha256(victim.read_bytes()).hexdigest() in str(error.value)
    assert not any("tx" in name for name in everything(raw(root)))


@pytest.mark.parametrize("where", ["cache", "mirror"])
def test_nothing_is_unpickled_before_it_is_checked(root, tmp_path, monkeypatch, where):
    if where == "mirror":
        monkeypatch.setenv("FGL_DATA_MIRROR", str(tmp_path / "mirror"))
    root = raw(root) if where == "cache" else tmp_path / "mirror"
    made, trap = write_citeseer(root), tmp_path / "unpickled"

    class Trap:
        def __reduce__(self):
            return Path.touch, (trap,)

    (root / FOLDER / "ind.citeseer.graph").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match=r"ind\.citeseer\.graph"):
        load_citation(made.entry)
    assert not trap.exists()


def test_folder_that_cannot_be_written_says_what_to_do(root, mirrored, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied", str(raw(root)))

    monkeypatch.setattr(transfer.os, "replace", refuse)
    with pytest.raises(InputError, match=r"cannot bring citeseer .*Permission denied.*FGL_HOME"):
        sources.obtain(mirrored.entry)
    assert everything(root) == []


def test_cache_folder_blocked_by_a_file(root, mirrored):
    root.mkdir()
    (root / "data").write_text("")
    with pytest.raises(InputError, match="cannot bring citeseer"):
        sources.obtain(mirrored.entry)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(root, mirrored):
    raw(root).mkdir(parents=True)
    raw(root).chmod(0o500)
    with pytest.raises(InputError, match="FGL_HOME"):
        sources.obtain(mirrored.entry)


def test_what_a_killed_process_left_is_cleared_away(root, mirrored):
    folder = raw(root) / FOLDER
    folder.mkdir(parents=True)
    old, young = folder / ".ind.citeseer.x.00000000.part", folder / ".ind.citeseer.x.11111111.part"
    for left in (old, young):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    sources.obtain(mirrored.entry)
    assert not old.exists() and young.exists()


# what the command line shows


def test_status_fetch_and_verify(root, mirrored, monkeypatch):
    monkeypatch.setattr(registry, "entries", lambda: {"citeseer": mirrored.entry})
    assert [row["state"] for row in sources.data_status()] == ["in the mirror"]
    assert sources.verify() == [{"name": "citeseer", "status": "not fetched", "files": 0}]
    assert sources.fetch() == [{"name": "citeseer", "source": "mirror", "folder": str(raw(root) / FOLDER)}]
    assert [row["state"] for row in sources.data_status()] == ["cached"]
    assert sources.verify(["citeseer"]) == [{"name": "citeseer", "status": "verified", "files": 8}]
    (raw(root) / FOLDER / "ind.citeseer.x").unlink()
    assert [row["state"] for row in sources.data_status()] == ["incomplete"]
    assert sources.verify() == [{"name": "citeseer", "status": "incomplete", "files": 7}]
    for name in ("ind.citeseer.y", "ind.citeseer.ty"):
        damage(raw(root) / FOLDER / name, "changed")
    with pytest.raises(InputError) as error:
        sources.verify()
    assert "ind.citeseer.y is damaged" in str(error.value) and "ind.citeseer.ty is damaged" in str(
        error.value
    )
    assert sources.fetch()[0]["source"] == "mirror" and sources.verify()[0]["status"] == "verified"


def test_status_lists_every_dataset_without_reading_it(root):
    rows = {row["name"]: row for row in sources.data_status()}
    assert len(rows) == 21 and rows["cora"]["bytes"] > 500_000
    assert rows["karate"]["state"] == "embedded" and rows["cora"]["state"] == "not fetched"
    assert sources.fetch(["karate"]) == [{"name": "karate", "source": "embedded", "folder": None}]
    for use in (sources.fetch, sources.verify):
        with pytest.raises(InputError, match="did you mean 'MUTAG'"):
            use(["MUTAGG"])


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "MUTAG", "ENZYMES", "Letter-low"])
def test_real_files_at_hand_are_the_registered_ones(name, tmp_path, monkeypatch):
    entry = registry.entry(name)
    for folder in (sources.raw_folder(), sources.mirror_folder()):
        files = [folder / file.place for file in sources.own_files(entry)] if folder else []
        if files and all(path.is_file() for path in files):
            break
    else:
        pytest.skip(f"{name} is not at hand: set FGL_DATA_MIRROR, or run `fgl data fetch {name}`")
    for file, path in zip(sources.own_files(entry), files, strict=True):
        file.check(path)
    if entry.carrier == "tudataset":  # the files inside too, as for a copy from elsewhere
        again = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(files[0]) as archive, zipfile.ZipFile(again, "w") as repacked:
            for member, info in zip_members(archive).items():
                repacked.writestr(f"{name}//{member}", archive.read(info))
        check_zip(again, entry)
