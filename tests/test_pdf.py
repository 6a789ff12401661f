"""The book as a PDF: what is missing is named, and what is printed is whole."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from pathlib import Path

import pytest

from fgl_core import pdf
from fgl_core.errors import InputError
from fgl_core.pdf import build_pdf, chromium, print_page
from fgl_core.render import BookFailed

STATIC = Path(__file__).parents[1] / "book" / "_static"
printing = pytest.mark.skipif(chromium() is None, reason="no Chromium: install it to print")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two pages of prose, staged; the first of them lies in a folder, as the book's does."""
    source = tmp_path / "_build" / "source"
    (source / "book").mkdir(parents=True)
    (source / "_toc.yml").write_text("format: jb-book\nroot: book/intro\nchapters:\n  - file: book/second\n")
    (source / "_config.yml").write_text(
        "title: Small\nonly_build_toc_files: true\nsphinx:\n  config:\n"
        '    html_static_path: ["book/_static"]\n    html_css_files: [["print.css", {media: print}]]\n'
    )
    (source / "book" / "_static").mkdir()
    shutil.copy(STATIC / "print.css", source / "book" / "_static")
    (source / "book" / "intro.md").write_text("# First\n\nSee [the other](second.md).\n")
    (source / "book" / "second.md").write_text("# Second\n\nThe end.\n")
    for name in ("_toc.yml", "book"):
        (shutil.copytree if name == "book" else shutil.copy)(source / name, tmp_path / name)
    return tmp_path


def objects(path: Path) -> str:
    """The PDF's objects as text, as far as they are not compressed or are so in the usual way."""
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    streams = [part.split(b"endstream")[0].strip(b"\r\n") for part in data.split(b"stream\n")[1:]]
    texts = [data]
    for stream in streams:
        try:
            texts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(texts).decode("latin-1")


def test_without_chromium_one_line_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(pdf, "BROWSERS", ("chromium",))
    monkeypatch.setattr(pdf, "jupyter_book", lambda *_: pytest.fail("something was built first"))
    with pytest.raises(InputError, match="install chromium"):
        build_pdf(project)
    monkeypatch.chdir(project)
    assert pdf.main() == 2
    error = capsys.readouterr().err
    assert error.startswith("error: no Chromium") and error.count("\n") == 1


def test_without_an_executed_book_the_notebooks_are_executed_first(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stage(root: Path) -> None:
        raise BookFailed(f"staged {root}")

    shutil.rmtree(project / "_build")
    monkeypatch.setattr(pdf, "chromium", lambda: "chromium")
    monkeypatch.setattr(pdf, "stage_book", stage)
    with pytest.raises(BookFailed, match=re.escape(f"staged {project}")):
        build_pdf(project)


def test_a_browser_that_prints_nothing_is_named_and_leaves_no_old_pdf(tmp_path: Path) -> None:
    old = tmp_path / "book.pdf"
    old.write_text("old")
    with pytest.raises(BookFailed, match="did not print"):
        print_page(shutil.which("true") or "true", tmp_path / "book.html", old)
    assert not old.exists()


@pytest.mark.browser
@printing
@pytest.mark.parametrize("styled", [True, False])
def test_the_style_sheet_numbers_the_pages(tmp_path: Path, styled: bool) -> None:
    page = tmp_path / "empty.html"
    link = f'<link rel="stylesheet" media="print" href="{(STATIC / "print.css").as_uri()}">' if styled else ""
    page.write_text(f"<!doctype html>{link}<p></p>")
    print_page(chromium() or "", page, tmp_path / "empty.pdf")
    words = re.search(r"<[0-9A-F]+> Tj|\] TJ", objects(tmp_path / "empty.pdf"))  # text is shown
    assert bool(words) is styled


@pytest.mark.browser
@printing
def test_all_pages_are_in_one_file_of_a4_pages_with_links_inside(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.utime(project / "_build" / "source" / "_toc.yml", times=(1e9, 1e9))
    printed = build_pdf(project)
    assert "pages as executed on 2001-09-" in capsys.readouterr().out
    assert printed == project / "_build" / "book.pdf"
    text = objects(printed)
    pages = len(re.findall(r"/Type\s*/Page\b", text))
    assert pages >= 2  # a chapter begins a page
    boxes = {tuple(map(float, box.split())) for box in re.findall(r"/MediaBox\s*\[([^\]]+)\]", text)}
    assert {(round(width), round(height)) for _, _, width, height in boxes} == {(595, 842)}  # A4
    assert re.search(r"/Type\s*/Outlines|/Outlines", text), "no outline"
    assert re.search(r"/Dest|/GoTo", text), "no link"
    assert "file://" not in text, "a link leads out of the PDF to the page it was printed from"
    assert not (project / "_build" / "pdf").exists()
