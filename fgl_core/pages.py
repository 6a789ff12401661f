"""What pages of the book get from the code, in MyST: tables that prose includes, and how a page was made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fgl_core.parameters import parameters_of
from fgl_core.reference import reference_pages
from fgl_core.study.decisions import PARTS, decisions

#: Nodes and edges as FGSSL's section 4.1 counts them.
PAPER_COUNTS = {"cora": (2708, 5429), "citeseer": (3312, 4732), "pubmed": (19717, 44338)}
BADGES = {"stated": "success", "inferred": "info", "decided": "warning"}

MADE = "## How this was made"
# what a page's stamp says: the stamps of study.results, tables.ledger and tables.tuning
STUDIES = re.compile(r"^Stud(?:y|ies) (`[\w-]+`(?:, `[\w-]+`)*)\.")
COUNTS = re.compile(r"Profile (\w+)[\w ]*: (\d+ of \d+ runs)|(\d+ of \d+ searches)")
SEEDS = re.compile(r"(Seeds? \d+(?:, \d+)*(?: to \d+)?)\.")
# a command that a page prints: what stands behind a colon is no part of it
COMMAND = re.compile(r"^fgl (?:study run|tune) [^:\n]+", re.MULTILINE)


def write_tables(folder: Path, notebooks: Iterable[Path], root: Path) -> None:
    """Write each table as a file of its own into ``folder``.

    Args:
        notebooks: the book's notebooks, relative to ``root``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "datasets": dataset_table(),
        "paper_counts": paper_counts(),
        "methods": method_tables(),
        "notebooks": notebook_tables(notebooks, root),
        **reference_pages(),
        **{f"decisions-{part}": decision_table(part) for part in PARTS},
    }.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def dataset_table() -> str:
    """Every dataset of the registry with its counts, licence and citation."""
    from fgl_core.datasets.registry import entries

    kinds = ("nodes", "edges", "graphs", "features", "classes")
    sections = []
    for task, heading in (("node", "Node classification"), ("graph", "Graph classification")):
        chosen = {name: entry for name, entry in entries().items() if entry.task == task}
        if not chosen:
            continue
        counted = [kind for kind in kinds if any(kind in entry.counts for entry in chosen.values())]
        counts = [
            [f"`{name}`", entry.title, *(_thousands(entry.counts.get(kind)) for kind in counted)]
            for name, entry in chosen.items()
        ]
        origins = [[f"`{name}`", entry.licence, entry.citation] for name, entry in chosen.items()]
        sections += [
            f"## {heading}",
            _table(["name", "what it is", *counted], counts),
            _table(["name", "licence", "please cite"], origins),
        ]
    return "\n\n".join(sections) + "\n"


def paper_counts() -> str:
    """The paper's counts of nodes and edges beside the registry's."""
    from fgl_core.datasets.registry import entries

    rows = [
        [f"`{name}`", *map(_thousands, (nodes, here["nodes"], edges, here["edges"]))]
        for name, (nodes, edges) in PAPER_COUNTS.items()
        for here in [entries()[name].counts]
    ]
    return _table(["", "nodes in the paper", "nodes here", "edges in the paper", "edges here"], rows) + "\n"


def method_tables() -> str:
    """Every method with its own parameters, their defaults, and where each default comes from."""
    from fgl_core.methods import METHODS

    sections = []
    for name, method in METHODS.items():
        cited = f" {{cite}}`{method.paper}`" if "paper" in vars(method) else ""
        lines = [f"{(inspect.getdoc(method) or '').splitlines()[0]}{cited}"]
        if fields := {key: field for key, field in method.model_fields.items() if key != "name"}:
            rows = [
                [f"`--{key.replace('_', '-')}`", f"`{field.default}`", field.description, _source(field)]
                for key, field in fields.items()
            ]
            lines.append(_table(["flag", "default", "what it is", "source"], rows))
        else:
            lines.append("It has no parameter of its own.")
        body = "\n\n".join(lines)
        sections.append(f":::{{dropdown}} {method.title}: `--method {name}`\n{body}\n:::")
    return "\n\n".join(sections) + "\n"


def decision_table(part: str) -> str:
    """What a paper leaves open in one part of the list, and what we decided."""
    rows = []
    for id, decision in decisions().items():
        if decision.part == part:
            named = {option: " (default)" * (option == decision.default) for option in decision.options}
            options = " or ".join(f"`{id}={option}`{note}" for option, note in named.items())
            mark = f"{{bdg-{BADGES[decision.mark]}}}`{decision.mark}`"
            why = f"{mark}; {decision.evidence}" if decision.evidence else mark
            rows.append([decision.question, decision.answer + f"; {options}" * bool(options), why])
    return _table(["open point", "what we do", "how sure"], rows) + "\n"


def notebook_tables(notebooks: Iterable[Path], root: Path) -> str:
    """Every notebook of the book with the parameters that ``fgl render`` accepts."""
    sections = []
    for notebook in notebooks:
        rows = [
            [f"`{name}`", f"`{parameter.annotation}`", f"`{parameter.default!r}`", parameter.meaning]
            for name, parameter in parameters_of(root / notebook).items()
        ]
        sections.append(
            f"`{notebook.as_posix()}`\n\n" + _table(["parameter", "type", "default", "what it is"], rows)
        )
    return "\n\n".join(sections) + "\n"


def say_how_made(notebook: Any, path: Path) -> None:
    """Say on an executed notebook that shows a figure or a table from what and how it was made.

    A line below the heading ``How this was made``, which is added where there is none, names the studies with
    their runs, the notebook, and the commands that make both again. A figure's caption gets the runs, too.

    Args:
        notebook: as nbformat reads it; changed in place.
        path: of the notebook in the project, as a command names it.
    """
    shown = [text for cell in notebook.cells for text in _outputs(cell)]
    if not any(text.startswith("image/") or "<table" in text or "| --- |" in text for text in shown):
        return
    records = list(dict.fromkeys(filter(None, map(_records, shown))))
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure and records:
            figure["caption"] += f" Records: {'; '.join(records)}."

    runs = list(dict.fromkeys(command.strip() for text in shown for command in COMMAND.findall(text)))
    again = [f"`{command}`" for command in (*runs[:2], f"fgl render {path.as_posix()}")]
    if len(runs) > 2:
        again[:2] = ["each command that is listed above"]
    said = [f"{record[0].upper()}{record[1:]}." for record in records]
    line = " ".join([*said, f"Notebook: `{path.as_posix()}`. To make it again: {', then '.join(again)}."])
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(MADE):
            cell.source = f"{MADE}\n\n{line}\n{cell.source.removeprefix(MADE)}"
            return
    import nbformat

    notebook.cells.append(nbformat.v4.new_markdown_cell(f"{MADE}\n\n{line}"))


def name_tables_apart(notebook: Any, path: Path) -> None:
    """Let no styled table of an executed notebook share its identifier with one of another page.

    On one page with it, as in the PDF, it would share its looks, too: what is bold in one, in both.

    Args:
        notebook: as nbformat reads it; changed in place.
        path: of the notebook in the project.
    """
    name = "-".join(path.with_suffix("").parts[1:])
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = re.sub(r'(?<=[#"])T_', f"T_{name}_", data["text/html"])


def _outputs(cell: Any) -> Iterator[str]:
    """The texts that a cell shows; for a picture, the name of its form."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            yield output.text
        for form, content in output.get("data", {}).items():
            if form.startswith(("image/", "text/")):
                yield form if form.startswith("image/") else content


def _records(stamp: str) -> str:
    """Studies, profiles, counts and seeds of a page's stamp; empty if the text is none."""
    studies, counts = STUDIES.match(stamp), COUNTS.findall(stamp)
    if not counts or not (studies or "searches shown" in stamp):
        return ""
    parts = [f"stud{'ies' if ',' in studies[1] else 'y'} {studies[1]}"] if studies else []
    parts += [f"profile {profile}: {runs}" if runs else searches for profile, runs, searches in counts]
    if seeds := SEEDS.search(stamp):
        parts.append(seeds[1].lower())
    return ", ".join(parts)


def _source(field: object) -> str:
    mark, _, detail = field.json_schema_extra["source"].partition(",")
    mark, _, reason = mark.partition(";")
    badge = f"{{bdg-{BADGES[mark]}}}`{mark}`" if mark in BADGES else mark
    return f"{badge} {(reason or detail).strip()}".strip()


def _thousands(count: int | None) -> str:
    return "" if count is None else f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
