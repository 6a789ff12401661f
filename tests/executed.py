"""Executes a notebook of the book, for tests of what it shows."""

from __future__ import annotations

import ast
import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import papermill
from matplotlib.figure import Figure

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(name: str, folder: Path, **parameters: Any) -> tuple[str, list[str]]:
    """Execute a notebook in its own folder; return what its cells show, as text, and its pictures.

    Args:
        name: relative to the folder of notebooks.
        folder: where the executed copy goes.
    """
    path = NOTEBOOKS / name
    executed = papermill.execute_notebook(
        path,
        folder / path.name,
        parameters=parameters,
        kernel_name="python3",
        cwd=path.parent,
        progress_bar=False,
        execution_timeout=600,
    )
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    shown = [output.text for output in outputs if output.output_type == "stream" and output.name == "stdout"]
    data = [output.data for output in outputs if "data" in output]
    shown += [entry.get("text/html") or entry.get("text/markdown") or entry["text/plain"] for entry in data]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    return "\n".join(shown), [entry["image/png"] for entry in data if "image/png" in entry]


def run_here(name: str, **parameters: Any) -> str:
    """The text that :func:`run` returns, without a kernel: seconds faster, for the many states of a store.

    Figures are drawn, and not returned.
    """
    plt.switch_backend("agg")
    printed, shown, names = io.StringIO(), [], {"__name__": "__main__"}
    for cell in nbformat.read(NOTEBOOKS / name, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        tree = ast.parse(cell.source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with redirect_stdout(printed):
            exec(compile(tree, name, "exec"), names)
            value = eval(compile(ast.Expression(last.value), name, "eval"), names) if last else None
        if "parameters" in cell.metadata.get("tags", []):
            names |= parameters
        if isinstance(value, Figure):
            value.draw_without_rendering()
            plt.close(value)
        elif value is not None:
            shown.append(_text(value))
    return printed.getvalue() + "\n".join(shown)


def _text(value: Any) -> str:
    for form in ("_repr_html_", "_repr_markdown_"):
        if (text := getattr(value, form, lambda: None)()) is not None:
            return text
    return repr(value)
