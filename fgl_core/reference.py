"""The reference of the package for the book: its modules by theme, each from its docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parent
#: Theme → its title, and the modules and packages that belong to it; the last one also takes what none names.
THEMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "data": (
        "Data and clients",
        ("datasets", "partition", "graph_partition", "clients", "graph_clients", "augment", "streams"),
    ),
    "models": ("Models and losses", ("models", "losses", "signature")),
    "methods": ("Methods and the round loop", ("federation", "methods")),
    "studies": ("Runs, records, studies", ("study", "analysis", "device")),
    "pages": ("Tables, figures, pages", ("tables", "plots")),
}
#: Names that are left out: the command, which has its own help, and the insides of operators.
LEFT_OUT = re.compile(r"fgl_core(\.cli(\..*)?|\.models\.ops\..*)?")


def reference_pages() -> dict[str, str]:
    """The overview, ``api``, and the listing of each theme, ``api_data`` and so on, by name; MyST."""
    overview = []
    pages = {}
    for theme, (title, _) in THEMES.items():
        names = [name for name in modules() if theme_of(name) == theme]
        rows = [f"| {{py:mod}}`{name}` | {summary(name)} |" for name in names]
        overview.append(
            "\n".join(
                [f"## [{title}](api/{theme}.md)\n", "| module | what it is for |", "| --- | --- |", *rows]
            )
        )
        pages[f"api_{theme}"] = "\n\n".join(map(_listing, names)) + "\n"
    return {"api": "\n\n".join(overview) + "\n", **pages}


def modules() -> list[str]:
    """The full names of the listed modules, in the order of their themes, a package before its parts."""
    names = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not LEFT_OUT.fullmatch(name):
            names.append(name)
    order = {part: place for place, part in enumerate(part for _, parts in THEMES.values() for part in parts)}
    return sorted(names, key=lambda name: (order.get(name.split(".")[1], len(order)), name))


def theme_of(module: str) -> str:
    """The theme of a module, by the part of its name after the package's."""
    part = module.split(".")[1]
    return next((theme for theme, (_, parts) in THEMES.items() if part in parts), list(THEMES)[-1])


def summary(module: str) -> str:
    """The first line of a module's docstring, read without importing it."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].replace("``", "`").replace(":class:", "").replace("|", "\\|")


def _listing(module: str) -> str:
    # what a package takes from its parts is listed with the parts
    options = "   :members:\n   :ignore-module-all:\n"
    return f"## {module.removeprefix('fgl_core.')}\n\n```{{eval-rst}}\n.. automodule:: {module}\n{options}```"
