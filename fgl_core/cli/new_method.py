"""``fgl new-method``: the files of a method of your own, to be changed."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

import fgl_core
from fgl_core.errors import InputError
from fgl_core.methods import METHODS

TEMPLATES = Path(__file__).with_name("templates")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 30  # letters of a name, so that the lines written keep to the project's width
LAST = re.compile(r"(?ms)\A.*^ *- file: notebooks/beyond/[^\n]*\n")  # up to the last page of its part

NEXT = """\
It runs as FedAvg until you change it:
  fgl run --dataset digits-knn --method $name --rounds 10
  python -m pytest tests/test_$module.py
  fgl render notebooks/beyond/$name.ipynb -p weight 0.1
Then:
  1. Change loss and aggregate in fgl_core/methods/$module.py, and the parameters; delete the hook that you
     leave as it is. The other hooks are in fgl_core/methods/fedavg.py.
  2. Let the test say what the method promises, with numbers worked out by hand.
  3. Say in the notebook what to look for. It is a page of the book already, in _toc.yml.
  4. If there is a paper, put it into book/references.bib, and its key into the method: paper = "the key".
  5. When the numbers shall stay, set revision to 1 and run `python tests/test_golden.py`: it stores two
     rounds for a test. Records of the draft, revision 0, are then stale."""


def new_method(name: str) -> int:
    """Write a method that runs as FedAvg, its test and its notebook, for you to change.

    Args:
        name: small letters and digits, in words with hyphens, e.g. fed-median.
    """
    root = _checkout()
    words = _words(name)
    files = {
        root / "fgl_core" / "methods" / f"{words['module']}.py": "method.txt",
        root / "tests" / f"test_{words['module']}.py": "test.txt",
        root / "notebooks" / "beyond" / f"{name}.ipynb": "notebook.txt",
    }
    for path in files:
        if path.exists():
            raise InputError(f"{path.relative_to(root)} exists already: take another name than {name!r}")
    contents = root / "_toc.yml"
    listed = LAST.match(contents.read_text(encoding="utf-8"))
    if not listed:
        raise InputError(f"{contents} lists no page of notebooks/beyond: put one there, and try again")
    print(f"in {root}:")
    try:
        for path, template in files.items():
            text = Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            print(f"  wrote {path.relative_to(root)}")
        line = f"      - file: notebooks/beyond/{name}\n"
        contents.write_text(listed[0] + line + listed.string[listed.end() :], encoding="utf-8")
        print("  added the notebook to _toc.yml\n")
    except OSError as error:
        raise InputError(f"cannot write to {root} ({error.strerror}): make it writable") from error
    print(Template(NEXT).substitute(words))
    return 0


def _checkout() -> Path:
    """The project's folder, where the code that runs lies in one."""
    package = Path(fgl_core.__file__).resolve().parent
    root = package.parent
    if not all(
        (root / part).exists() for part in ("_toc.yml", "pyproject.toml", "tests", "notebooks/beyond")
    ):
        raise InputError(
            f"fgl_core lies in {package}, which is no checkout of the project: a method needs its tests and"
            " notebooks beside it. Get the repository, and install it with `pip install -e .`"
        )
    return root


def _words(name: str) -> dict[str, str]:
    """What stands in the templates: the name, and what file, class and title it makes.

    Raises:
        InputError: the name cannot be used.
    """
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise InputError(
            f"a method cannot be called {name!r}: take small letters and digits, in words with hyphens,"
            f" {LONGEST} letters at most, such as fed-median"
        )
    if name in METHODS:
        raise InputError(f"there is a method {name!r} already: take another name, or change that one")
    module, class_name = name.replace("-", "_"), "".join(map(str.capitalize, name.split("-")))
    taken = {method.__name__.lower() for method in METHODS.values()}
    text = "".join(
        (TEMPLATES / template).read_text(encoding="utf-8") for template in ("method.txt", "test.txt")
    )
    used = set(re.findall(r"\w+", text))
    if class_name.lower() in taken or {module, class_name} & {*used, *keyword.kwlist}:
        raise InputError(f"the name {name!r} would be mistaken for another in the code: take another one")
    return {"name": name, "module": module, "class_name": class_name, "title": name.replace("-", " ").title()}
