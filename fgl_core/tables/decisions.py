"""What each decision changes, taken in another way: one factor at a time."""

from __future__ import annotations

import pandas as pd

from fgl_core.methods import METHODS
from fgl_core.study.decisions import alternatives, decisions
from fgl_core.study.results import Results
from fgl_core.study.spec import RunSpec
from fgl_core.tables.contrasts import contrasts


def changes(results: Results) -> pd.DataFrame:
    """Each choice minus the default, seed by seed, in the method's own accuracy; as :func:`contrasts` has it.

    A row is named by method and choice, such as ``FGSSL: momentum=keep``.
    """
    methods = dict.fromkeys(spec.method.name for spec in results.specs)
    names = {_name(results.as_written(spec)) for spec in results.specs}
    pairs = {}
    for method in methods:
        title = METHODS[method].title
        for choice in alternatives(method, type(results.specs[0])):
            if (name := f"{title}: {choice}") in names and choice != title:
                pairs[name] = (name, f"{title}: {title}")
    return contrasts(results, pairs, label=lambda spec: _name(results.as_written(spec)))


def questions(results: Results) -> pd.DataFrame:
    """The decisions that a study changes: what is open, the default, and the options tried."""
    names = [_name(results.as_written(spec)).split(": ")[1] for spec in results.specs]
    tried: dict[str, list[str]] = {}
    for choice in dict.fromkeys(names):
        id, equals, option = choice.partition("=")
        if equals:
            tried.setdefault(id, []).append(option)
    rows = {
        id: {
            "what is open": decisions()[id].question,
            "default": decisions()[id].default or "as the method has it",
            "tried": ", ".join(options),
        }
        for id, options in tried.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _name(spec: RunSpec) -> str:
    """Method and choice of a run: the alternative that has the run's own digest."""
    title = METHODS[spec.method.name].title
    same = spec.model_dump(mode="json", include={"task", "dataset", "setting", "clients", "rounds", "seed"})
    for choice, fields in alternatives(spec.method.name, type(spec)).items():
        if RunSpec.parse({**same, **fields}).digest == spec.digest:
            return f"{title}: {choice}"
    raise ValueError(f"{spec.slug} is no single decision away from {title}")
