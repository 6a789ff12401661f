"""The built book, mostly in a browser without a network: maths is set, nothing is asked for elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, chromium

HTML = Path(__file__).parents[1] / "_build" / "html"
PAGES = sorted(
    page.relative_to(HTML).as_posix() for page in HTML.rglob("*.html") if "_static" not in page.parts
)

pytestmark = pytest.mark.skipif(not PAGES, reason="no built book: run `make book` first")
in_browser = pytest.mark.skipif(
    chromium() is None, reason="no Chromium: install it to test the book in a browser"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.mark.browser
@in_browser
def test_the_method_page_sets_its_equations(browser: Browser) -> None:
    browser.open((HTML / "book" / "fgssl" / "method.html").as_uri())
    assert browser.value("document.querySelectorAll('mjx-container[display=true]').length") >= 13
    # the glyphs come from MathJax's own fonts, which must have been found beside the page
    assert browser.value("document.fonts.ready.then(f => [...f].some(x => x.family.startsWith('MJX') && "
                         "x.status == 'loaded'))")  # fmt: skip


@pytest.mark.browser
@in_browser
def test_no_page_leaves_maths_unset_asks_elsewhere_or_overflows_a_phone(browser: Browser) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=False
    )
    problems = []
    for page in PAGES:
        if 'http-equiv="Refresh"' in (HTML / page).read_text(encoding="utf-8"):
            continue  # it sends the reader on at once, in the middle of what is asked here
        browser.requested.clear()
        browser.open((HTML / page).as_uri())
        elsewhere = [url for url in browser.requested if not url.startswith(("file:", "data:", "blob:"))]
        wrong = browser.value("[...document.querySelectorAll('mjx-merror')].map(e => e.textContent)")
        unset = browser.value(
            "[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).length"
        )
        width = browser.value("document.documentElement.scrollWidth")
        if elsewhere or wrong or unset or width > 420:
            problems.append((page, elsewhere, wrong, f"{unset} unset", f"{width} px wide"))
    assert problems == []


@pytest.mark.browser
@in_browser
def test_searching_works_from_a_file(browser: Browser) -> None:
    browser.open((HTML / "search.html").as_uri() + "?q=Louvain")
    deadline = time.monotonic() + 20
    while not (found := browser.value("document.querySelectorAll('#search-results ul.search li').length")):
        assert time.monotonic() < deadline, "the search found nothing"
        time.sleep(0.2)
    assert found > 0


def test_every_figure_of_a_notebook_is_in_its_page() -> None:
    """A figure cell without output builds without a warning."""
    for page in PAGES:
        source = HTML / "_sources" / Path(page).with_suffix(".ipynb")
        if not source.is_file():
            continue
        cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
        names = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") for cell in cells]
        html = (HTML / page).read_text(encoding="utf-8")
        assert [name for name in names if name and f'id="{name}"' not in html] == [], page
