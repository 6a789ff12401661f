"""The script that sorts tables and downloads them, on small pages of its own in a browser."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from browser import Browser

from fgl_core.pdf import chromium

SCRIPT = Path(__file__).parents[1] / "book" / "_static" / "tables.js"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="no Chromium: install it to test the tables' script"),
]
Show = Callable[[str], Browser]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Show:
    """``show(table)`` opens a page with that table and the script, as a file."""

    def show(table: str) -> Browser:
        page = tmp_path / "page.html"
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><script src="{SCRIPT.as_uri()}"></script>'
            f'<article class="bd-article">{table}</article>',
            encoding="utf-8",
        )
        browser.open(page.as_uri())
        return browser

    return show


def simple(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


def column(browser: Browser, number: int = 1) -> list[str]:
    """What a column shows from top to bottom."""
    return browser.value(
        f"[...document.querySelectorAll('tbody tr')].map(r => r.cells[{number - 1}].textContent)"
    )


def click(browser: Browser, label: str = "value") -> str | None:
    """Click the button in the table's head that says ``label``; return the order its header then tells."""
    return browser.value(
        "(b => { b.click(); return b.closest('th').ariaSort; })"
        f"([...document.querySelectorAll('th button')].find(b => b.textContent == {json.dumps(label)}))"
    )


NUMBERS = [
    ["81.0 ± 1.5", "9.5 ± 3.0", "100.0", "missing (0 of 3)", "", "9.6 (1 of 3)"],
    ["+5.0 [-7.7, +17.7]", "-12.0 [-20.0, -4.0]", "\u22122.5", "+0.1", "missing", "-3"],
    ["12\u202f345 nodes", "999", "1,234.5", "about 40", "unknown", "5e-3"],
    ["0.120", "< 0.001", "1.000", "unknown", "0.050", "hint: 0.3"],
    ["[2, 9]", "[\u22121, 50]", "[1.5, 4]", "", "±3", "≠ 7"],
]
ASCENDING = [
    [1, 5, 0, 2, 3, 4],
    [1, 5, 2, 3, 0, 4],
    [5, 3, 1, 2, 0, 4],
    [1, 4, 0, 5, 2, 3],
    [1, 2, 0, 4, 5, 3],
]
DESCENDING = [
    [2, 0, 5, 1, 3, 4],
    [0, 3, 2, 5, 1, 4],
    [0, 2, 1, 3, 5, 4],
    [2, 5, 0, 4, 1, 3],
    [5, 4, 0, 2, 1, 3],
]


@pytest.mark.parametrize("case", range(len(NUMBERS)))
def test_numbers_sort_by_the_first_and_what_is_none_stays_last(show: Show, case: int) -> None:
    cells = NUMBERS[case]
    browser = show(simple(["value"], [[cell] for cell in cells]))
    assert click(browser) == "ascending"
    assert column(browser) == [cells[place] for place in ASCENDING[case]]
    assert click(browser) == "descending"
    assert column(browser) == [cells[place] for place in DESCENDING[case]]
    assert click(browser) is None
    assert column(browser) == cells


def test_words_sort_as_words_and_numbers_within_them_as_numbers(show: Show) -> None:
    browser = show(simple(["value"], [["Table 10"], ["table 9"], [""], ["Fig. 4"], ["Éclair"]]))
    click(browser)
    assert column(browser) == ["Éclair", "Fig. 4", "table 9", "Table 10", ""]


def test_equal_cells_keep_their_order_and_one_column_sorts_at_a_time(show: Show) -> None:
    browser = show(simple(["a", "b"], [["2", "x"], ["1", "y"], ["2", "w"], ["1", "z"]]))
    click(browser, "a")
    assert column(browser, 2) == ["y", "z", "x", "w"]
    assert click(browser, "b") == "ascending"
    assert column(browser, 2) == ["w", "x", "y", "z"]
    assert browser.value("document.querySelectorAll('th[aria-sort]').length") == 1


def test_a_key_sorts_too_and_the_focus_stays(show: Show) -> None:
    browser = show(simple(["a", "b"], [["2", "x"], ["1", "y"]]))
    for key in ("Tab", "Tab", "Enter"):
        browser.press(key)
    assert browser.value("document.activeElement.closest('th').ariaSort") == "ascending"
    assert browser.value("document.activeElement.textContent") == "b"


def styled() -> str:
    """A table of pandas with two levels of rows, each named once, and a row of their names."""
    places = pd.MultiIndex.from_product(
        [["cora", "pubmed"], ["FedAvg", "FGSSL"]], names=["dataset", "method"]
    )
    frame = pd.DataFrame(
        {"5 clients": ["81.0 ± 1.0", "82.5", "70.1", "n, a"], "10 clients": list("9876")}, places
    )
    return frame.style.set_uuid("t").set_caption("Accuracy in %").to_html()


def test_rows_that_share_a_header_move_apart_and_come_together_again(show: Show) -> None:
    browser = show(styled())
    labels = browser.value("[...document.querySelectorAll('th button')].map(b => b.textContent)")
    assert sorted(labels) == ["10 clients", "5 clients", "dataset", "method"]
    before = browser.value("document.querySelector('tbody').innerHTML")
    assert click(browser, "10 clients") == "ascending"
    rows = browser.value(
        "[...document.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    assert rows == [
        ["pubmed", "FGSSL", "n, a", "6"],
        ["pubmed", "FedAvg", "70.1", "7"],
        ["cora", "FGSSL", "82.5", "8"],
        ["cora", "FedAvg", "81.0 ± 1.0", "9"],
    ]
    assert browser.value("document.querySelectorAll('tbody [rowspan]').length") == 0
    click(browser, "10 clients")
    assert click(browser, "10 clients") is None
    assert browser.value("document.querySelector('tbody').innerHTML") == before


def download(browser: Browser, folder: Path) -> list[list[str]]:
    """Press the table's button for CSV and read the file."""
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.value("document.querySelector('button.csv').click()")
    deadline = time.monotonic() + 20
    while not (files := list(folder.glob("*.csv"))):
        assert time.monotonic() < deadline, "no file came"
        time.sleep(0.05)
    assert [file.name for file in files] == ["page-1.csv"]
    with files[0].open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_the_download_holds_what_the_page_shows(show: Show, tmp_path: Path) -> None:
    browser = show(styled())
    click(browser, "10 clients")
    assert download(browser, tmp_path) == [
        ["dataset", "method", "5 clients", "10 clients"],
        ["pubmed", "FGSSL", "n, a", "6"],
        ["pubmed", "FedAvg", "70.1", "7"],
        ["cora", "FGSSL", "82.5", "8"],
        ["cora", "FedAvg", "81.0 ± 1.0", "9"],
    ]


def test_two_rows_of_headers_become_one_in_the_download(show: Show, tmp_path: Path) -> None:
    columns = pd.MultiIndex.from_product([["cora", "pubmed"], ["mean", "std"]])
    frame = pd.DataFrame([[1, 2, 3, 4], [0, 9, 8, 7]], ['a "b"', "c d"], columns).rename_axis("method")
    browser = show(frame.to_html())
    labels = browser.value("[...document.querySelectorAll('th button')].map(b => b.textContent)")
    assert sorted(labels) == ["mean", "mean", "method", "std", "std"]
    assert click(browser, "mean") == "ascending"
    assert download(browser, tmp_path) == [
        ["method", "cora / mean", "cora / std", "pubmed / mean", "pubmed / std"],
        ["c d", "0", "9", "8", "7"],
        ['a "b"', "1", "2", "3", "4"],
    ]


def test_a_table_without_headers_or_with_one_row_does_not_sort(show: Show) -> None:
    browser = show("<table><tbody><tr><td>1</td></tr><tr><td>0</td></tr></tbody></table>")
    assert browser.value("document.querySelectorAll('button.sort').length") == 0
    assert show(simple(["a"], [["1"]])).value("document.querySelectorAll('button.sort').length") == 0
    assert browser.value("document.querySelectorAll('button.csv').length") == 1


def test_a_header_with_a_link_keeps_it(show: Show) -> None:
    browser = show(simple(['<a href="#x">a</a>'], [["2"], ["1"]]))
    assert browser.value("document.querySelector('th button').ariaLabel") == "Sort by a"
    browser.value("document.querySelector('th a').click()")
    assert column(browser) == ["2", "1"]
    browser.value("document.querySelector('th button').click()")
    assert column(browser) == ["1", "2"]


def test_an_equation_is_downloaded_as_tex_even_after_sorting(show: Show, tmp_path: Path) -> None:
    set_ = "<mjx-container></mjx-container>"  # MathJax draws glyphs that are no text
    known = (
        "[...document.querySelectorAll('td mjx-container')].map((e, i) => ({typesetRoot: e, math: 'x_' + i}))"
    )
    browser = show(
        simple(["value", "symbol"], [["2", set_], ["1", set_]])
        + f"<script>MathJax = {{startup: {{document: {{math: {known}}}}}}}</script>"
    )
    assert click(browser) == "ascending"
    assert download(browser, tmp_path) == [["value", "symbol"], ["1", "x_1"], ["2", "x_0"]]
