"""The parameters of a notebook: its cell tagged ``parameters``, with a type and a comment for each.

papermill itself only prints a line when a parameter does not exist: with these, names and types are checked
before anything runs.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fgl_core.errors import InputError

ANNOTATIONS = {kind.__name__: kind for kind in (bool, int, float, str, list, tuple, dict)} | {
    "Literal": Literal
}


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell, e.g. ``clients: list[int] = [5, 10]  # how many``."""

    name: str
    annotation: str
    default: Any
    meaning: str = ""  # the comment behind it

    def parse(self, text: str) -> Any:
        """The value written as ``text`` on a command line.

        Raises:
            InputError: when it is not of the parameter's type.
        """
        from pydantic import TypeAdapter, ValidationError

        candidates: list[Any] = [text]
        if self.annotation != "str":
            with suppress(ValueError, SyntaxError):  # a bare word, such as a name out of a Literal
                candidates.insert(0, ast.literal_eval(text))
        kind = TypeAdapter(_type(self.annotation))
        for candidate in candidates:
            try:
                return kind.validate_python(candidate, strict=True)
            except ValidationError:
                continue
        example = _shell(self.default)
        if self.default is None and "list[int]" in self.annotation:
            example += ", or '[5, 10]'"
        raise InputError(
            f"parameter {self.name}: {text!r} is not of type {self.annotation}; "
            f"write it like the default, -p {self.name} {example}"
        )


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    """The parameters of a notebook by name, in the order of its cell tagged ``parameters``.

    Raises:
        InputError: when the file is not a notebook, or has not exactly one such cell, or the cell holds
            something other than assignments of plain values.
    """
    cells = [
        cell["source"]
        for cell in _read(notebook).cells
        if "parameters" in cell.get("metadata", {}).get("tags", [])
    ]
    if len(cells) != 1:
        raise InputError(
            f"{notebook}: {len(cells)} cells are tagged 'parameters'; a notebook needs exactly one"
        )
    tokens = tokenize.generate_tokens(io.StringIO(cells[0]).readline)
    try:
        comments = {
            token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT
        }
        found = [
            replace(_parameter(node), meaning=comments.get(node.end_lineno, ""))
            for node in ast.parse(cells[0]).body
            if not _is_import(node)
        ]
    except (SyntaxError, tokenize.TokenError, ValueError) as error:
        raise InputError(
            f"{notebook}: {error} in the parameters cell; write 'name: type = plain value  # what it is'"
        ) from None
    return {parameter.name: parameter for parameter in found}


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "typing"


def _parameter(node: ast.stmt) -> Parameter:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
            _type(ast.unparse(annotation))
            return Parameter(name, ast.unparse(annotation), ast.literal_eval(value))
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            default = ast.literal_eval(value)
            return Parameter(name, type(default).__name__, default)
    raise ValueError(f"line {node.lineno} is no assignment")


def _type(annotation: str) -> Any:
    try:
        return eval(annotation, {"__builtins__": {}}, ANNOTATIONS)
    except (NameError, TypeError):
        raise ValueError(f"the type {annotation} is not a plain one") from None


def _read(notebook: Path) -> Any:
    import nbformat

    if not notebook.is_file():
        raise InputError(f"no notebook {notebook}: give the path of an .ipynb file")
    try:
        return nbformat.read(notebook, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError):
        raise InputError(f"{notebook} is not a notebook: give the path of an .ipynb file") from None


def _shell(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if re.fullmatch(r"[\w./-]+", text) else f"'{text}'"
