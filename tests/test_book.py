"""The built book, mostly in a browser without a network: it can be read by everybody and asks nobody.

One visit to each page answers all that is asked of every page.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from browser import Browser

from fgl_core.pdf import chromium

HTML = Path(__file__).parents[1] / "_build" / "html"
PAGES = sorted(
    page.relative_to(HTML).as_posix() for page in HTML.rglob("*.html") if "_static" not in page.parts
)
AXE = Path(__file__).parent / "axe"
HEADINGS = {"heading-order", "empty-heading", "page-has-heading-one"}  # of moderate impact, says axe

pytestmark = pytest.mark.skipif(not PAGES, reason="no built book: run `make book` first")
in_browser = pytest.mark.skipif(
    chromium() is None, reason="no Chromium: install it to test the book in a browser"
)


@dataclass(frozen=True)
class Visit:
    """What was seen on a page.

    Attributes:
        elsewhere: addresses that are no files.
        errors: of scripts, the theme's own aside.
        maths: what MathJax could not read, and how many equations it has not set.
        width: pixels that the page takes on a screen of 420.
        bare: figures without a caption, images without words in their place.
        plain: how many tables cannot be downloaded, or have a head and rows but do not sort.
        clipped: what is wider than a sheet of A4 without its margins when it is printed.
        barriers: findings of axe, each with its rule and where, in the light and in the dark.
    """

    page: str
    elsewhere: list[str]
    errors: list[str]
    maths: list[str]
    width: int
    bare: list[str]
    plain: int
    clipped: list[str]
    barriers: list[str]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def visits(browser: Browser) -> list[Visit]:
    """Every page but those that send the reader on at once."""
    staying = [
        page for page in PAGES if 'http-equiv="Refresh"' not in (HTML / page).read_text(encoding="utf-8")
    ]
    known: dict[str, list[str]] = {"light": [], "dark": []}
    seen = [visit(browser, page, known) for page in staying]
    browser.call("Emulation.clearDeviceMetricsOverride")
    return seen


def visit(browser: Browser, page: str, known: dict[str, list[str]]) -> Visit:
    """Open a page and look at it as on a phone, on paper, and with axe on a wide screen.

    Args:
        known: as :func:`barriers` takes it.
    """
    screen = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", width=420, **screen)
    browser.requested.clear()
    browser.errors.clear()
    browser.open((HTML / page).as_uri())
    maths = browser.value(
        "[...document.querySelectorAll('mjx-merror')].map(e => e.textContent).concat("
        "[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container'))"
        ".map(e => `not set: ${e.textContent}`))"
    )
    width = browser.value("document.documentElement.scrollWidth")
    bare = browser.value(  # Sphinx gives an image without words its path
        "[...document.querySelectorAll('.bd-article :is(figure:not(:has(figcaption)), img:not([alt]),"
        ' img[alt=""], img[alt$=".png"], img[alt$=".svg"])\')].map(e => e.outerHTML.slice(0, 200))'
    )
    plain = browser.value(
        "(tables => tables.filter(t => t.tHead && t.tBodies[0].rows.length > 1 && !t.querySelector('.sort'))"
        ".length + tables.length - document.querySelectorAll('.bd-article button.csv').length)"
        "([...document.querySelectorAll('.bd-article table')])"
    )
    clipped = on_paper(browser)
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, **screen)
    elsewhere = [url for url in browser.requested if not url.startswith(("file:", "data:", "blob:"))]
    errors = [error for error in browser.errors if "THEBE_JS_URL" not in error]  # the theme declares it twice
    return Visit(page, elsewhere, errors, maths, width, bare, plain, clipped, barriers(browser, known))


def on_paper(browser: Browser) -> list[str]:
    """Parts of the text that a sheet would clip. It is 210 mm wide, with margins of 16 mm: 672 pixels."""
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=672, height=900, deviceScaleFactor=1, mobile=False
    )
    clipped = browser.value(
        "[...document.querySelectorAll('.bd-article :is(table, pre, mjx-container, img, svg, p, .sd-card)')]"
        ".filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 673)"
        ".map(e => `${e.tagName}: ${e.textContent.trim().slice(0, 80)}`)"
    )
    browser.call("Emulation.setEmulatedMedia", media="")
    return clipped


def barriers(browser: Browser, known: dict[str, list[str]] | None = None) -> list[str]:
    """What axe finds serious or critical, and headings out of order.

    Args:
        known: by theme, the looks of texts that other pages have had already; those of this page are added.
    """
    known = known if known is not None else {"light": [], "dark": []}
    browser.value((AXE / "axe.min.js").read_text(encoding="utf-8") + (AXE / "look.js").read_text())
    barriers = []
    for theme, rules in (("light", None), ("dark", ["color-contrast"])):
        seen = browser.value(f"look('{theme}', {json.dumps(known[theme])}, {json.dumps(rules)})")
        known[theme] += seen["looks"]
        barriers += [
            f"{rule} ({impact}, {theme}): {where}"
            for rule, impact, where in seen["found"]
            if impact in ("serious", "critical") or rule in HEADINGS
        ]
    return barriers


@pytest.mark.browser
@in_browser
class TestEveryPage:
    def test_asks_for_nothing_elsewhere(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.elsewhere for visit in visits if visit.elsewhere} == {}

    def test_sets_its_equations(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.maths for visit in visits if visit.maths} == {}

    def test_does_not_overflow_a_phone(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.width for visit in visits if visit.width > 420} == {}

    def test_puts_its_figures_into_words(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.bare for visit in visits if visit.bare} == {}

    def test_lets_its_tables_be_sorted_and_downloaded(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.plain for visit in visits if visit.plain} == {}

    def test_is_not_clipped_on_paper(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.clipped for visit in visits if visit.clipped} == {}

    def test_raises_no_error(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.errors for visit in visits if visit.errors} == {}

    def test_has_no_barrier(self, visits: list[Visit]) -> None:
        assert {visit.page: visit.barriers for visit in visits if visit.barriers} == {}


@pytest.mark.browser
@in_browser
def test_axe_sees_a_barrier_where_there_is_one(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang='en'><title>x</title><style>[data-theme=dark] p {color: #888}</style>"
        "<main><h1>x</h1><h3>y</h3><p style='background: #999'>on grey</p><img src='data:,'></main></html>"
    )
    browser.open(page.as_uri())
    found = [text.partition(":")[0] for text in barriers(browser)]
    assert found == ["heading-order (moderate, light)", "image-alt (critical, light)",
                     "color-contrast (serious, dark)"]  # fmt: skip


@pytest.mark.browser
@in_browser
def test_the_method_page_sets_its_equations_in_its_own_letters(browser: Browser) -> None:
    browser.open((HTML / "book" / "fgssl" / "method.html").as_uri())
    assert browser.value("document.querySelectorAll('mjx-container[display=true]').length") >= 13
    # the glyphs come from MathJax's own fonts, which must have been found beside the page
    assert browser.value("document.fonts.ready.then(f => [...f].some(x => x.family.startsWith('MJX') && "
                         "x.status == 'loaded'))")  # fmt: skip


@pytest.mark.browser
@in_browser
def test_a_keyboard_reaches_the_text_at_once_and_a_table_after_it(browser: Browser) -> None:
    browser.open((HTML / "notebooks" / "claims.html").as_uri())
    browser.press("Tab")
    assert browser.value("document.activeElement.textContent.trim()") == "Skip to main content"
    browser.press("Enter")
    stops = 0
    while not browser.value("document.activeElement.matches('.bd-article th button.sort')"):
        browser.press("Tab")
        stops += 1
        assert browser.value("document.activeElement.closest('main') !== null"), "the focus left the text"
        assert stops < 40, "no table was reached"
    browser.press("Enter")
    assert browser.value("document.activeElement.closest('th').ariaSort") == "ascending"
    outline = browser.value("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "nobody sees where the focus is"


@pytest.mark.browser
@in_browser
def test_searching_works_from_a_file(browser: Browser) -> None:
    browser.open((HTML / "search.html").as_uri() + "?q=Louvain")
    deadline = time.monotonic() + 20
    while not (found := browser.value("document.querySelectorAll('#search-results ul.search li').length")):
        assert time.monotonic() < deadline, "the search found nothing"
        time.sleep(0.2)
    assert found > 0


def cells(page: str) -> list[dict]:
    """The cells of the executed notebook behind a page; none behind one of prose."""
    source = HTML / "_sources" / Path(page).with_suffix(".ipynb")
    return json.loads(source.read_text(encoding="utf-8"))["cells"] if source.is_file() else []


def shown(cell: dict) -> dict[str, str]:
    """What a cell shows, by its form; of several outputs of one form, the last."""
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    return {form: "".join(content) for part in data for form, content in part.items()}


def is_picture(cell: dict) -> bool:
    return any(form.startswith("image/") for form in shown(cell))


def is_table(cell: dict) -> bool:
    return "<table" in shown(cell).get("text/html", "") or "| --- |" in shown(cell).get("text/markdown", "")


def test_every_figure_of_a_notebook_is_in_its_page() -> None:
    """A figure cell without output builds without a warning."""
    for page in PAGES:
        names = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") for cell in cells(page)]
        html = (HTML / page).read_text(encoding="utf-8")
        assert [name for name in names if name and f'id="{name}"' not in html] == [], page


def test_every_picture_of_a_notebook_is_a_figure() -> None:
    """With a name, a caption and a text for those who do not see it, that is."""
    pictures = [(page, cell) for page in PAGES for cell in cells(page) if is_picture(cell)]
    assert pictures
    for page, cell in pictures:
        about = cell["metadata"].get("mystnb", {})
        assert about.get("figure", {}).get("caption"), f"{page}: {cell['source']}"
        assert about.get("image", {}).get("alt"), f"{page}: {cell['source']}"


def test_every_page_with_results_says_how_it_was_made() -> None:
    pages = [page for page in PAGES if any(is_picture(cell) or is_table(cell) for cell in cells(page))]
    assert pages
    for page in pages:
        stamps = [
            text for cell in cells(page) if (text := shown(cell).get("text/markdown", "")).startswith("Stud")
        ]
        texts = ["".join(cell["source"]) for cell in cells(page) if cell["cell_type"] == "markdown"]
        command = f"`fgl render {Path(page).with_suffix('.ipynb')}`"
        made = [text for text in texts if text.startswith("## How this was made") and command in text]
        assert len(made) == 1, page
        for stamp in stamps:
            studies = re.findall(r"`[\w-]+`", stamp.partition(".")[0])
            assert [study for study in studies if study not in made[0]] == [], page


def test_the_book_is_small() -> None:
    assert sum(file.stat().st_size for file in HTML.rglob("*") if file.is_file()) < 40e6
