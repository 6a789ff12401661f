"""Rendering: one notebook with other parameters, and the whole book.

Both execute notebooks with papermill, in the notebook's own folder and with the kernel of this environment.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fgl_core.errors import InputError, unknown
from fgl_core.pages import name_tables_apart, say_how_made, write_tables
from fgl_core.parameters import parameters_of

CELL_TIMEOUT = 900  # seconds for one cell of the book, whose notebooks compute nothing long
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class NotebookFailed(RuntimeError):
    """A notebook stopped with an error. The message names notebook and cell and ends with the traceback."""


class BookFailed(RuntimeError):
    """Jupyter Book reported an error or a warning; the book that was there before is untouched."""


def render(notebook: Path, parameters: dict[str, str], output: Path | None = None) -> Path:
    """Run ``notebook`` with other parameters; write the executed copy and an HTML page beside it.

    Args:
        parameters: values by name, written as on a command line: ``{"clients": "[5]", "dataset": "cora"}``.
        output: the executed notebook; if not given, ``_build/rendered/`` and its path in the project.

    Returns:
        the HTML page. It opens without a network.

    Raises:
        InputError: before anything runs, for an unknown or ill-typed parameter; later, for a value that a
            cell refuses.
        NotebookFailed: when a cell raises anything else.
    """
    notebook = Path(notebook).resolve()
    declared = parameters_of(notebook)
    values = {}
    for name, text in parameters.items():
        if name not in declared:
            raise unknown(f"parameter of {notebook.name}", name, declared)
        values[name] = declared[name].parse(text)
    if output is None:
        root = book_root(notebook)
        output = root / "_build" / "rendered" / notebook.relative_to(root)
    output = Path(output).resolve()
    if output == notebook:
        raise InputError(f"{output} is the notebook itself; name another output")

    page = output.with_suffix(".html")
    page.unlink(missing_ok=True)  # an earlier page must not outlive a run that fails
    _execute(notebook, output, values, timeout=None)
    page.write_text(_page(output, notebook), encoding="utf-8")
    print(f"notebook: {output}\npage:     {page}")
    return page


def stage_book(root: Path | None = None) -> Path:
    """Lay out the book's sources with every notebook of ``_toc.yml`` executed, at the repository's own paths.

    As many notebooks run at once as there are cores.

    Args:
        root: the project; the nearest folder with ``_toc.yml`` if not given.

    Returns:
        ``_build/source``, replaced if it existed.

    Raises:
        InputError: what a notebook needs is not there, or cannot be used.
        NotebookFailed: a cell of a notebook raises anything else.
    """
    from joblib import Parallel, cpu_count, delayed

    root = root or book_root(Path.cwd())
    out = root / "_build" / "source"
    pages = list(book_pages(root))  # every name is checked before anything runs
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in ("_config.yml", "CHANGELOG.md"):
        shutil.copy(root / name, out / name)
    shutil.copytree(root / "book", out / "book")
    # pages show code straight from these files
    shutil.copytree(root / "fgl_core", out / "fgl_core", ignore=shutil.ignore_patterns("__pycache__"))
    notebooks = [page for page in pages if page.suffix == ".ipynb"]
    write_tables(out / "book" / "_generated", notebooks, root)
    jobs = max(1, min(cpu_count(), len(notebooks)))
    pool = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
    ended = pool(delayed(_execute_page)(root, out, page) for page in notebooks)
    for number, (page, seconds) in enumerate(zip(notebooks, ended, strict=True), start=1):
        print(f"[{number}/{len(notebooks)}] {page}: {seconds:.0f} s", flush=True)
    shutil.copy(root / "_toc.yml", out / "_toc.yml")  # last: where it lies, every notebook was executed
    return out


def _execute_page(root: Path, out: Path, page: Path) -> float:
    """Execute a page of the book from ``root`` into ``out``; return how many seconds it took."""
    start = time.perf_counter()
    _execute(root / page, out / page, {}, timeout=CELL_TIMEOUT, page=page)
    return time.perf_counter() - start


def build_book(root: Path | None = None) -> Path:
    """Execute the notebooks, build the book into ``_build/html`` and return its ``index.html``.

    The new book replaces the old one only when everything went well.

    Raises:
        InputError: what a notebook needs is not there, or cannot be used.
        NotebookFailed: when a notebook fails.
        BookFailed: when Jupyter Book reports an error or a warning.
    """
    root = root or book_root(Path.cwd())
    source = stage_book(root=root)
    fresh = root / "_build" / "new"
    print("[jupyter-book] ...", end=" ", flush=True)
    start = time.perf_counter()
    built = jupyter_book(source, fresh, "html")
    print(f"{time.perf_counter() - start:.0f} s")
    html = root / "_build" / "html"
    shutil.rmtree(html, ignore_errors=True)
    built.rename(html)
    shutil.rmtree(fresh)
    return html / "index.html"


def jupyter_book(source: Path, out: Path, builder: str) -> Path:
    """Build a staged book without executing anything; return the folder that holds what was built.

    Args:
        source: from :func:`stage_book`.
        out: a folder for the builder's own use, replaced if it exists.
        builder: ``html`` or ``singlehtml``.

    Raises:
        BookFailed: Jupyter Book reports an error or a warning; ``out`` is then gone.
    """
    shutil.rmtree(out, ignore_errors=True)
    command = ["build", str(source), "--path-output", str(out), "--builder", builder]
    command += ["-W", "-n", "--keep-going", "--all", "-q"]
    # Jupyter Book has no `python -m`; its command line is this function.
    entry = "from jupyter_book.cli.main import main; main()"
    finished = subprocess.run(
        [sys.executable, "-c", entry, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if finished.returncode != 0:
        shutil.rmtree(out, ignore_errors=True)
        raise BookFailed(f"the book was not built\n{finished.stdout}")
    return out / "_build" / builder


def book_root(start: Path) -> Path:
    """The nearest folder at or above ``start`` that holds ``_toc.yml``."""
    for folder in (start, *start.parents):
        if (folder / "_toc.yml").is_file():
            return folder
    raise InputError(f"no _toc.yml in {start} or above it: run this inside the project, or name an output")


def book_pages(root: Path) -> Iterator[Path]:
    """The book's pages, relative to ``root``, in the order of ``_toc.yml``."""
    import yaml

    def names(node: Any) -> Iterator[str]:
        if isinstance(node, list):
            for child in node:
                yield from names(child)
        elif isinstance(node, dict):
            for key, child in node.items():
                if key in ("root", "file"):
                    yield child
                else:
                    yield from names(child)

    for name in names(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))):
        candidates = (root / f"{name}{suffix}" for suffix in ("", ".md", ".ipynb"))
        page = next((candidate for candidate in candidates if candidate.is_file()), None)
        if page is None:
            raise InputError(f"_toc.yml names {name}, but there is no {name}.md and no {name}.ipynb")
        yield page.relative_to(root)


def _execute(
    notebook: Path, output: Path, values: dict[str, Any], timeout: int | None, page: Path | None = None
) -> None:
    """Run a notebook in its own folder; write the executed copy without papermill's own metadata.

    As a ``page`` of the book, the copy also says how it was made, and its tables have names of their own.
    """
    import nbformat
    import papermill
    from nbclient.exceptions import CellControlSignal, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    # the kernel named python3 is this environment's, whatever else the user has registered
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    logging.getLogger("papermill").addFilter(_is_no_false_warning)
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        executed = papermill.execute_notebook(
            notebook,
            output,
            parameters=values,
            kernel_name="python3",
            cwd=notebook.parent,
            progress_bar=False,
            execution_timeout=timeout,
            extra_arguments=["--log-level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        output.unlink(missing_ok=True)
        if error.ename == InputError.__name__:  # what the user can mend: its line says all
            raise InputError(f"{page or notebook.name}: {error.evalue}") from None
        trace = ANSI_COLOUR.sub("", "\n".join(error.traceback))
        raise NotebookFailed(f"{notebook}: cell In [{error.exec_count}] failed\n{trace}") from None
    except (CellControlSignal, DeadKernelError) as error:
        output.unlink(missing_ok=True)
        raise NotebookFailed(f"{notebook} failed: {ANSI_COLOUR.sub('', str(error))}") from error
    for holder in (executed, *executed.cells):
        holder.metadata.pop("papermill", None)
    if page is not None:
        say_how_made(executed, page)
        name_tables_apart(executed, page)
    nbformat.write(executed, output)


def _is_no_false_warning(record: logging.LogRecord) -> bool:
    # papermill knows no parameter whose type has a | in it; ours have been checked before
    return not record.getMessage().startswith("Passed unknown parameter")


PAGE_TEMPLATE = """\
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}
<script>MathJax = {tex: {inlineMath: [["$", "$"], ["\\\\(", "\\\\)"]]}}</script>
<script async src="{{ resources.mathjax_url }}"></script>
{%- endblock -%}
"""


def _page(executed: Path, notebook: Path) -> str:
    """An executed notebook as one HTML page that asks no host; the project's own MathJax sets the maths."""
    from jinja2 import DictLoader
    from nbconvert import HTMLExporter

    mathjax = (folder / "book/_static/mathjax/es5/tex-mml-chtml.js" for folder in notebook.parents)
    exporter = HTMLExporter(
        extra_loaders=[DictLoader({"page": PAGE_TEMPLATE})],
        template_file="page",
        mathjax_url=next((file.as_uri() for file in mathjax if file.is_file()), ""),
    )
    body, _ = exporter.from_filename(str(executed))
    return body


def main() -> int:
    """Build the book; what ``make book`` runs."""
    try:
        index = build_book()
    except (InputError, NotebookFailed, BookFailed) as error:
        print(f"\nerror: {error}", file=sys.stderr)  # below the unfinished progress line
        return 2 if isinstance(error, InputError) else 1
    print(f"The book is built: open {index}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
