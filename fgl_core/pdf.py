"""The book as one PDF: all pages in one, printed by Chromium."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from fgl_core.errors import InputError
from fgl_core.render import BookFailed, NotebookFailed, book_pages, book_root, jupyter_book, stage_book

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
PRINTING_TIMEOUT = 900  # seconds
MATHS = 120_000  # milliseconds of the page's own clock in which MathJax sets the equations


def chromium() -> str | None:
    """The path of Chromium or Chrome, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def build_pdf(root: Path | None = None) -> Path:
    """Print the book into ``_build/book.pdf`` and return that path.

    The notebooks are those that ``make book`` executed; if it did not run yet, they are executed now.

    Args:
        root: the project; the nearest folder with ``_toc.yml`` if not given.

    Raises:
        InputError: there is no Chromium, or what a notebook needs is not there.
        NotebookFailed: a notebook fails.
        BookFailed: Jupyter Book reports an error or a warning, or Chromium prints nothing.
    """
    browser = chromium()
    if browser is None:
        raise InputError("no Chromium to print with: install chromium or google-chrome, and run this again")
    root = root or book_root(Path.cwd())
    source = root / "_build" / "source"
    staged = source / "_toc.yml"  # laid out last
    if staged.is_file():
        executed = datetime.fromtimestamp(staged.stat().st_mtime)
        print(f"pages as executed on {executed:%Y-%m-%d at %H:%M}; `make book` does so anew", flush=True)
    else:
        stage_book(root=root)
    fresh = root / "_build" / "pdf"
    print("[jupyter-book] all pages in one ...", flush=True)
    built = jupyter_book(source, fresh, "singlehtml")
    page = _one_page(built, next(book_pages(root)).with_suffix(".html"))
    print("[chromium] ...", flush=True)
    pdf = root / "_build" / "book.pdf"
    print_page(browser, page, pdf)
    shutil.rmtree(fresh)
    return pdf


def print_page(browser: str, page: Path, pdf: Path) -> None:
    """Print a page as a PDF with an outline, without a network.

    Args:
        browser: from :func:`chromium`.
        page: an HTML file.
        pdf: the file to write, replaced if it exists.

    Raises:
        BookFailed: Chromium fails, takes too long, or leaves no PDF.
    """
    pdf.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",  # the pages are our own, and containers allow no sandbox
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            f"--virtual-time-budget={MATHS}",
            "--no-pdf-header-footer",  # the style sheet numbers the pages
            "--generate-pdf-document-outline",
            f"--print-to-pdf={pdf}",
            page.as_uri(),
        ]
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=PRINTING_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise BookFailed(f"{browser} did not print {page} in {PRINTING_TIMEOUT} s") from None
    if done.returncode != 0 or not pdf.is_file():
        raise BookFailed(f"{browser} did not print {page}\n{done.stdout.strip()}")


def _one_page(built: Path, name: Path) -> Path:
    """The built page where its own links to styles and figures lead somewhere: beside them.

    Sphinx writes it into the folder of the first page, with links as seen from above. Links within the book
    name that file, and must stay inside. All pages count their citations from 1, so that the entries of the
    bibliography need names of their own.

    Args:
        built: the builder's folder.
        name: of the first page, relative to it.
    """
    text = (built / name).read_text(encoding="utf-8")
    text = text.replace(f'href="{name.as_posix()}#', 'href="#')
    text = re.sub(r'(<div class="citation" id=")(id\d+")', r"\1reference-\2", text)
    text = re.sub(r'(<a class="reference internal" href="#)(id\d+" title=")', r"\1reference-\2", text)
    page = built / "book.html"
    page.write_text(text, encoding="utf-8")
    return page


def main() -> int:
    """Print the book; what ``make pdf`` runs."""
    try:
        pdf = build_pdf()
    except (InputError, NotebookFailed, BookFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print(f"The book is printed: open {pdf} ({os.path.getsize(pdf) / 1e6:.0f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
