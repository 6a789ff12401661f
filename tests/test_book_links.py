"""Every link inside the built book leads somewhere: files exist, and so do the places in them."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

HTML = Path(__file__).parents[1] / "_build" / "html"
PAGES = sorted(page for page in HTML.rglob("*.html") if "_static" not in page.relative_to(HTML).parts)


class Links(HTMLParser):
    """Where a page leads, and which places it has."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.leads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {found[key] for key in ("id", "name") if found.get(key)}
        self.leads += [value for key in ("href", "src") if (value := found.get(key)) is not None]
        for source in (found.get("srcset") or "").split(","):
            self.leads += source.split()[:1]


@cache
def read(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere; those to other hosts are not followed."""
    lost = []
    for lead in read(page).leads:
        parts = urlsplit(lead)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        place = unquote(parts.fragment)
        if not target.is_file() or (
            place and target.suffix == ".html" and place not in read(target).places | {"top"}
        ):
            lost.append(lead)
    return lost


@pytest.mark.skipif(not PAGES, reason="no built book: run `make book` first")
def test_every_link_inside_the_book_leads_somewhere() -> None:
    assert {str(page.relative_to(HTML)): lost for page in PAGES if (lost := broken(page))} == {}


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "picture 1.png").touch()
    (tmp_path / "other.html").write_text('<h1 id="here">x</h1>')
    (tmp_path / "deep" / "page.html").write_text(
        '<a href="../other.html#here">1</a><a href="../other.html#there">2</a><a href="none.html">3</a>'
        '<img src="../picture%201.png"><script src="lost.js"></script><a href="#">4</a><a href="#me">5</a>'
        '<a href="https://example.org/x#y">6</a><a href="mailto:a@example.org">7</a><p id="me">'
    )
    assert broken(tmp_path / "deep" / "page.html") == ["../other.html#there", "none.html", "lost.js"]
