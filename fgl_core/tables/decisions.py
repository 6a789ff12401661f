"""What each decision changes, taken in another way: one factor at a time."""

from __future__ import annotations

import pandas as pd

from fgl_core.study.decisions import alternatives, decisions
from fgl_core.study.results import Results
from fgl_core.study.spec import RunSpec
from fgl_core.tables.contrasts import contrasts


def changes(results: Results) -> pd.DataFrame:
    """Each choice minus the default, seed by seed, in the method's own accuracy.

    Columns: as :func:`~fgl_core.tables.contrasts.contrasts` has them. A row is named by
    method and choice, such as ``FGSSL: momentum=keep``.
    """
    names = {spec.digest: (spec.method.title, _choice(results.as_written(spec))) for spec in results.specs}
    pairs = {
        f"{title}: {choice}": (f"{title}: {choice}", f"{title}: {title}")
        for title, choice in names.values()
        if choice != title
    }
    return contrasts(results, pairs, label=lambda spec: ": ".join(names[spec.digest]))


def questions(results: Results) -> pd.DataFrame:
    """The decisions that a study changes: what is open, the default, and the options tried."""
    tried: dict[str, list[str]] = {}
    for choice in dict.fromkeys(_choice(results.as_written(spec)) for spec in results.specs):
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


def _choice(spec: RunSpec) -> str:
    """What a run decides in another way: the alternative that has its digest; the method's title for none."""
    same = spec.model_dump(mode="json", include={"task", "dataset", "setting", "clients", "rounds", "seed"})
    for choice, fields in alternatives(spec.method.name, type(spec)).items():
        if RunSpec.parse({**same, **fields}).digest == spec.digest:
            return choice
    raise ValueError(f"{spec.slug} is no single decision away from {spec.method.title}")
