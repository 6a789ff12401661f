"""What an executed notebook says of how it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from fgl_core.pages import name_tables_apart, say_how_made

PATH = Path("notebooks/part/page.ipynb")
STAMP = (
    "Study `one`. Profile lite: 10 of 30 runs shown. Seeds 0 to 2. Newest record: 2026-01-02, commit `abc`."
    " 20 missing; `fgl study run one --profile lite` fills them."
)
LEDGER = (
    "Studies `one`, `two`. Profile paper decides: 0 of 60 runs recorded."
    " Profile lite gives hints: 24 of 24 runs recorded. Newest record: 2026-01-02."
)
SEARCHES = "11 of 33 searches shown. Newest run: 2026-01-02, commit `abc`."


def markdown(text: str) -> Any:
    return new_code_cell(
        outputs=[new_output("execute_result", {"text/markdown": text, "text/plain": "<Markdown>"})]
    )


def printed(text: str) -> Any:
    return new_code_cell(outputs=[new_output("stream", name="stdout", text=text)])


def table() -> Any:
    return new_code_cell(outputs=[new_output("execute_result", {"text/html": "<div><table>1</table></div>"})])


def figure(caption: str) -> Any:
    picture = new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})
    return new_code_cell(
        outputs=[picture], metadata={"mystnb": {"figure": {"name": "f", "caption": caption}}}
    )


def made(*cells: Any) -> tuple[list[str], list[str]]:
    """The Markdown cells of a notebook that was told how it was made, and its captions."""
    notebook = new_notebook(cells=list(cells))
    say_how_made(notebook, PATH)
    nbformat.validate(notebook)
    captions = [c.metadata.mystnb.figure.caption for c in notebook.cells if "mystnb" in c.metadata]
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"], captions


def test_the_line_names_study_runs_seeds_notebook_and_commands() -> None:
    heading = new_markdown_cell("## How this was made\n\nWith care.")
    (text,), captions = made(
        markdown(STAMP),
        figure("Accuracy."),
        heading,
        printed("fgl study run one --profile lite\nfgl render x\n"),
    )
    assert text == (
        "## How this was made\n\n"
        "Study `one`, profile lite: 10 of 30 runs, seeds 0 to 2. Notebook: `notebooks/part/page.ipynb`."
        " To make it again: `fgl study run one --profile lite`, then `fgl render notebooks/part/page.ipynb`."
        "\n\n\nWith care."
    )
    assert captions == ["Accuracy. Records: study `one`, profile lite: 10 of 30 runs, seeds 0 to 2."]


def test_a_page_without_records_says_which_notebook_made_it() -> None:
    (text,), captions = made(figure("Accuracy."), printed("fgl run --dataset karate\n"))
    assert text == (
        "## How this was made\n\n"
        "Notebook: `notebooks/part/page.ipynb`. To make it again: `fgl render notebooks/part/page.ipynb`."
    )
    assert captions == ["Accuracy."]


def test_two_stamps_of_a_page_both_count_and_one_seed_is_one() -> None:
    single = STAMP.replace("Seeds 0 to 2", "Seed 4").replace("10 of 30", "1 of 1")
    (text,), _ = made(markdown(STAMP), markdown(single), table())
    assert (
        "profile lite: 10 of 30 runs, seeds 0 to 2. Study `one`, profile lite: 1 of 1 runs, seed 4." in text
    )


def test_the_ledger_names_all_studies_and_does_not_repeat_a_list_of_commands() -> None:
    listed = "".join(
        f"fgl study run {name} --profile paper: 3 of 5 runs\n" for name in ("one", "two", "three")
    )
    (text,), _ = made(markdown(LEDGER), table(), printed(listed))
    assert "Studies `one`, `two`, profile paper: 0 of 60 runs, profile lite: 24 of 24 runs." in text
    assert text.endswith(
        "again: each command that is listed above, then `fgl render notebooks/part/page.ipynb`."
    )


def test_searches_are_counted_as_searches() -> None:
    (text,), _ = made(markdown(SEARCHES), table(), printed("fgl tune --dataset cora\n"))
    assert "\n\n11 of 33 searches. Notebook" in text and "again: `fgl tune --dataset cora`, then" in text


def test_a_page_of_words_alone_says_nothing() -> None:
    widget = new_output("display_data", {"application/json": {"<table": 1}, "text/plain": "a bar"})
    cells = markdown("Some words."), printed("1\n"), new_code_cell(outputs=[widget])
    assert made(*cells) == ([], [])


def test_a_styled_table_has_its_page_in_its_identifiers() -> None:
    frame = pd.DataFrame({"a": ["T_1"]})
    html = frame.style.set_uuid("x").map(lambda _: "font-weight: bold").to_html()
    notebook = new_notebook(
        cells=[new_code_cell(outputs=[new_output("execute_result", {"text/html": html})])]
    )
    name_tables_apart(notebook, PATH)
    named = notebook.cells[0].outputs[0].data["text/html"]
    assert '<table id="T_part-page_x"' in named and "#T_part-page_x_row0_col0 {" in named
    assert named == html.replace("T_x", "T_part-page_x")  # and what a cell shows stays
