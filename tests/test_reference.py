"""The reference part of the book: the package's own listing, and the glossary."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import docutils.core
import docutils.utils
import pytest
from sphinx.ext.napoleon import Config, GoogleDocstring

from fgl_core.datasets.registry import entries
from fgl_core.reference import THEMES, modules, reference_pages, summary, theme_of

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
SECTIONS = Config(napoleon_use_ivar=True, napoleon_custom_sections=[("Class attributes", "params_style")])
ROLE = re.compile(r":(?:func|class|meth|mod|data|attr|exc):`~?([\w.]+)`")


def test_every_module_is_listed_once_with_what_it_is_for() -> None:
    files = {path for path in (ROOT / "fgl_core").rglob("*.py") if "cli" not in path.parts}
    insides = {path for path in files if path.parent.name == "ops" and path.name != "__init__.py"}
    assert len(modules()) == len(set(modules())) == len(files - insides) - 1  # all but the package itself
    pages = reference_pages()
    for name in modules():
        assert summary(name), f"{name} has no docstring: say in a line what it is for"
        assert f"{{py:mod}}`{name}` | {summary(name)}" in pages["api"]
        assert pages[f"api_{theme_of(name)}"].count(f".. automodule:: {name}\n") == 1
    assert set(pages) == {"api", *(f"api_{theme}" for theme in THEMES)}


def test_themes_and_their_pages_belong_together() -> None:
    assert theme_of("fgl_core.datasets.node") == "data" and theme_of("fgl_core.federation") == "methods"
    for theme, (title, parts) in THEMES.items():
        page = (BOOK / "api" / f"{theme}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {title}\n") and f"_generated/api_{theme}.md" in page
        assert {part for part in parts if f"fgl_core.{part}" not in modules()} == set()


def documented(name: str) -> list[tuple[str, str]]:
    """What the listing of a module shows: its own docstring, and those of what is public and its own."""
    module = importlib.import_module(name)
    found = [(name, inspect.getdoc(module) or "")]
    for key, value in vars(module).items():
        own = getattr(value, "__module__", None) == name and not key.startswith("_")
        if own and (inspect.isclass(value) or inspect.isfunction(value)):
            found.append((f"{name}.{key}", value.__doc__ or ""))
            members = vars(value).items() if inspect.isclass(value) else ()
            found += [
                (f"{name}.{key}.{part}", member.__doc__ or "")
                for part, member in members
                if not part.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
            ]
    return found


@pytest.mark.parametrize("theme", THEMES)
def test_docstrings_can_be_typeset_and_name_what_exists(theme: str, capsys: pytest.CaptureFixture) -> None:
    """The book is built with warnings as errors, and shows a name that leads nowhere without a warning."""
    problems = []
    for name in filter(lambda name: theme_of(name) == theme, modules()):
        for place, docstring in documented(name):
            text = str(GoogleDocstring(inspect.cleandoc(docstring), SECTIONS))
            problems += [
                f"{place}: there is no {role}" for role in ROLE.findall(text) if not exists(role, name)
            ]
            text = re.sub(r":(?:py:)?\w+:(?=`)", "", text)  # roles are Sphinx's
            docutils.core.publish_doctree(text, place, settings_overrides={"report_level": 2})
    written = [
        line for line in capsys.readouterr().err.splitlines() if re.search(r"\((WARNING|ERROR)/", line)
    ]
    assert problems + written == []


def exists(name: str, module: str) -> bool:
    """Whether a full name of the package's is a module, something in one, or a field or member of that.

    A short one must be of the module that says it, or of a class there: elsewhere it leads nowhere.
    """
    if not name.startswith("fgl_core."):
        own = vars(importlib.import_module(module))
        if hasattr(own.get(name), "__module__"):
            return own[name].__module__ == module
        places = [module, *(f"{module}.{key}" for key, value in own.items() if inspect.isclass(value))]
        return name.startswith("scipy.") or any(exists(f"{place}.{name}", module) for place in places)
    value, *parts = importlib.import_module("fgl_core"), *name.split(".")[1:]
    path = "fgl_core"
    for part in parts:
        path = f"{path}.{part}"
        if part in {**getattr(value, "__annotations__", {}), **getattr(value, "model_fields", {})}:
            return True
        if not hasattr(value, part):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError:
                return False
        value = getattr(value, part)
    return True


WANTED = """
    client, server, round, local epoch, aggregate, partition, split, non-IID, Louvain, anchor, temperature,
    FNSC, FGSD, PF, aHash, HCT, record, study, profile, seed, revision, stamp
"""


def glossary() -> dict[str, str]:
    """Terms and what they mean."""
    entries = re.findall(
        r"```\{glossary\}\n(.*?)```", (BOOK / "glossary.md").read_text(encoding="utf-8"), re.DOTALL
    )
    return dict(re.findall(r"^(\S[^\n]*)\n((?:  [^\n]+\n)+)", "\n".join(entries), re.MULTILINE))


def test_the_glossary_explains_the_terms_that_the_book_uses() -> None:
    terms = glossary()
    assert [term for term in WANTED.strip().replace("\n    ", " ").split(", ") if term not in terms] == []
    assert all(len(meaning.split()) >= 5 for meaning in terms.values())
    pages = [ROOT / "CHANGELOG.md", *BOOK.rglob("*.md"), *(ROOT / "notebooks").rglob("*.ipynb")]
    text = " ".join(page.read_text(encoding="utf-8") for page in pages if page.name != "glossary.md").lower()
    assert [term for term in terms if term.lower() not in text] == [], "explained, but never used"


def test_every_data_set_has_its_licence_and_its_work_cited() -> None:
    """A citation in the registry begins with the first author; the page on data cites that work."""
    text = (BOOK / "data.md").read_text(encoding="utf-8")
    cited = {key for keys in re.findall(r"\{cite(?::t)?\}`([^`]+)`", text) for key in keys.split(",")}
    assert len(entries()) >= 21
    for name, entry in entries().items():
        assert len(entry.licence) > 5, name
        work = re.split("; (?:collected|split)", entry.citation)[0]
        author, years = re.match(r"\w+", work)[0].lower(), re.findall(r"\b(?:19|20)\d\d\b", work)
        assert f"{author}{years[-1]}" in cited, name
