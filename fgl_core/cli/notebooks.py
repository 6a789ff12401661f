"""``fgl render``: a notebook with other parameters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def render(
    notebook: Path,
    *,
    parameter: Annotated[
        list[tuple[str, str]] | None,
        Parameter(name=("--parameter", "-p"), negative=(), json_list=False, json_dict=False),
    ] = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
) -> int:
    """Run a notebook with other parameters, make a page of it.

    fgl render notebooks/fgssl/table1.ipynb -p clients '[5, 10]' -p dataset cora

    Args:
        notebook: the .ipynb file; it is not changed.
        parameter: name and value, once for each parameter, the value as Python writes it.
        output: the executed copy; _build/rendered/ and the notebook's path if not given.
    """
    from fgl_core import render as rendering

    try:
        rendering.render(notebook, dict(parameter or []), output)
    except rendering.NotebookFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0
