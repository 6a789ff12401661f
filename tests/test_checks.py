"""Zips and text files are judged by what they hold, before anything is made of it."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fgl_core.datasets import sources
from fgl_core.datasets.checks import Mismatch, UnsafeZip, check_zip, content_sha256, zip_members
from fgl_core.datasets.registry import Entry, RawFile
from fgl_core.errors import InputError

PAGE = b"<!doctype html><title>Not here</title>"


def text_sha256(text: bytes, kind: str) -> tuple[int, str]:
    return content_sha256(io.BytesIO(text), kind)


def zipped_entry(contents: dict[str, bytes]) -> Entry:
    files = tuple(
        RawFile(name, hashlib.sha256(text).hexdigest(), "bytes", len(text)) for name, text in contents.items()
    )
    archive = RawFile("TOY.zip", "0" * 64, "bytes", 100)
    return Entry("TOY", "toy", "tudataset", "graph", "none", "none", "tudataset", files, archive=archive)


CONTENTS = {"TOY_A.txt": b"1, 2\n2, 1\n", "TOY_graph_labels.txt": b"1\n-1\n"}


def write_zip(path: Path, contents: dict[str, bytes], prefix: str = "TOY/") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in contents.items():
            archive.writestr(prefix + name, text)
    return path


@pytest.mark.parametrize("prefix", ["TOY/", "TOY//", "./TOY/", ""])
def test_zip_is_judged_by_the_files_inside(tmp_path, prefix):
    path = write_zip(tmp_path / "TOY.zip", CONTENTS | {"README.txt": b"anything"}, prefix)
    check_zip(path, zipped_entry(CONTENTS))


def test_zip_with_other_files_inside_is_refused(tmp_path):
    entry = zipped_entry(CONTENTS)
    changed = write_zip(tmp_path / "changed.zip", CONTENTS | {"TOY_A.txt": b"1, 2\n2, 2\n"})
    with pytest.raises(Mismatch, match=rf"TOY_A.txt inside it: .*{entry.files[0].sha256}.*sha256"):
        check_zip(changed, entry)
    without = write_zip(tmp_path / "without.zip", {"TOY_A.txt": CONTENTS["TOY_A.txt"]})
    with pytest.raises(Mismatch, match=r"TOY_graph_labels\.txt"):
        check_zip(without, entry)


@pytest.mark.parametrize("content", [b"", b"PK", PAGE, gzip.compress(PAGE, mtime=0)])
def test_what_is_no_zip_is_refused(tmp_path, content):
    path = tmp_path / "TOY.zip"
    path.write_bytes(content)
    with pytest.raises(Mismatch, match=hashlib.sha256(content).hexdigest()):
        check_zip(path, zipped_entry(CONTENTS))


def test_every_truncation_and_flipped_byte_of_a_zip_is_refused_or_harmless(tmp_path):
    entry, path = zipped_entry(CONTENTS), write_zip(tmp_path / "TOY.zip", CONTENTS)
    good, broken = path.read_bytes(), tmp_path / "broken.zip"
    for end in range(len(good)):
        broken.write_bytes(good[:end])
        with pytest.raises(Mismatch):
            check_zip(broken, entry)
    refused = 0
    for position in range(len(good)):
        broken.write_bytes(good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1 :])
        try:
            check_zip(broken, entry)
        except (Mismatch, UnsafeZip):
            refused += 1
    assert refused > len(good) / 3  # the rest are dates, attributes and the like, with the same files inside


@pytest.mark.parametrize(
    "name", ["../TOY_A.txt", "TOY/../../TOY_A.txt", "/etc/TOY_A.txt", "C:\\TOY_A.txt", "..\\TOY_A.txt"]
)
def test_zip_entry_that_leaves_its_folder_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv("FGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FGL_DATA_MIRROR", str(tmp_path / "mirror"))
    write_zip(tmp_path / "mirror" / "tudataset" / "TOY.zip", {name: b"1"} | CONTENTS, "")
    with pytest.raises(InputError, match="leaves the folder"):
        sources.obtain(zipped_entry(CONTENTS))
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file()]


def test_zip_entry_that_is_a_link_is_refused(tmp_path):
    path = tmp_path / "TOY.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("TOY/TOY_A.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with zipfile.ZipFile(path) as archive, pytest.raises(UnsafeZip, match="link"):
        zip_members(archive)


def test_zip_bomb_is_not_unpacked(tmp_path):
    count, sha256 = text_sha256(b"1, 2\n", "edges")
    entry = replace(zipped_entry({}), files=(RawFile("TOY_A.txt", sha256, "edges", count),))
    check_zip(write_zip(tmp_path / "good.zip", {"TOY_A.txt": b"1, 2\n"}), entry)
    with pytest.raises(Mismatch, match="5000005 bytes"):
        check_zip(write_zip(tmp_path / "bomb.zip", {"TOY_A.txt": b"1, 2\n" + b" " * 5_000_000}), entry)


def test_content_checks_see_numbers_not_bytes():
    pairs = np.array([[1, 2], [2, 1], [1, 3], [3, 1]])
    keys = np.sort(pairs[:, 0] * 2**32 + pairs[:, 1]).astype("<i8")
    expected = (4, hashlib.sha256(keys.tobytes()).hexdigest())
    for text in (
        b"1, 2\n2, 1\n1, 3\n3, 1\n",
        b"3,1\r\n1,3\r\n2,1\r\n1,2\r\n4,4\r\n1,2",
        b"3, 1\n\n1,  3\n2,1\n1,2\n1,2\n",
    ):
        assert text_sha256(text, "edges") == expected
    assert text_sha256(b"1, 2\n1, 3\n3, 1\n", "edges") != expected
    numbers = (3, hashlib.sha256(np.array([1, -1, 2], "<i8").tobytes()).hexdigest())
    assert text_sha256(b"1\n-1\n2\n", "numbers") == text_sha256(b"1\r\n-1\r\n2", "numbers") == numbers
    assert text_sha256(b"", "numbers") == (0, hashlib.sha256(b"").hexdigest())


@pytest.mark.parametrize(
    "bad",
    [
        PAGE,
        gzip.compress(PAGE, mtime=0),
        b"1\n2.5\n",
        b"1\nx\n",
        b"1 2\n",
        b"1\n,\n",
        b"9" * 40 + b"\n",
        b"1\n1, 2\n",
    ],
)
def test_text_that_is_no_list_of_numbers_is_refused(bad):
    with pytest.raises(ValueError):
        text_sha256(bad, "numbers")
    with pytest.raises(ValueError):
        text_sha256(b"1, 2\n" + bad, "edges")


def test_content_is_read_in_chunks_without_cutting_numbers(monkeypatch):
    text = b"".join(b"%d, %d\n" % (u, v) for u in range(1, 60) for v in range(1, 60) if u != v)
    whole = text_sha256(text, "edges")
    for rows in (1, 2, 3, 7):
        monkeypatch.setattr("fgl_core.datasets.checks.ROWS", rows)
        assert text_sha256(text, "edges") == whole == (59 * 58, whole[1])
