"""The teaching labs: copies for students, without solutions.

A task of a lab is a cell tagged ``task``, a cell tagged ``solution`` and a cell tagged ``check``. Executed in
order, the solution takes the place of the stub in the task; without it, the check fails until the student has
written an own one.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from fgl_core.errors import InputError
from fgl_core.render import book_root

if TYPE_CHECKING:
    from nbformat import NotebookNode

LABS = Path("notebooks", "labs")


def without_solutions(lab: NotebookNode) -> NotebookNode:
    """A copy of a lab that keeps every cell but those tagged ``solution``."""
    copy = deepcopy(lab)
    copy.cells = [cell for cell in lab.cells if "solution" not in cell.metadata.get("tags", [])]
    return copy


def write_student_copies(root: Path, out: Path) -> list[Path]:
    """Write every lab without its solutions.

    Args:
        root: the project.
        out: the folder to write, made if it does not exist; a file of the same name is replaced.

    Returns:
        The files written.

    Raises:
        InputError: the project has no labs.
    """
    import nbformat

    labs = sorted((root / LABS).glob("*.ipynb"))
    if not labs:
        raise InputError(f"no labs in {root / LABS}: run this inside the project")
    out.mkdir(parents=True, exist_ok=True)
    for lab in labs:
        nbformat.write(without_solutions(nbformat.read(lab, as_version=4)), out / lab.name)
    return [out / lab.name for lab in labs]


def main() -> int:
    """Write the students' copies to ``_build/labs-student``; what ``make labs-student`` runs."""
    try:
        root = book_root(Path.cwd())
        copies = write_student_copies(root, root / "_build" / "labs-student")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(str(copy) for copy in copies))
    return 0


if __name__ == "__main__":
    sys.exit(main())
