"""What attacks on clients of FedCCH found out, from records of :mod:`fgl_core.study.privacy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fgl_core.analysis.privacy import VIEWS
from fgl_core.study.results import Results
from fgl_core.study.spec import PrivacySpec, Spec
from fgl_core.study.store import Record
from fgl_core.tables.cells import paired
from fgl_core.tables.frames import OWN
from fgl_core.tables.layout import wide_table
from fgl_core.tables.statistics import holm, mean_std

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

CHANCE = "pure guessing"
SECRETS = {
    "set": "which set of {0}",
    "classes": "prevailing class, {1}",
    "size": "large or small graphs, {1}",
    "member": "one graph's membership, {1}",
}


def secret(spec: PrivacySpec) -> str:
    """What is guessed, in words."""
    return SECRETS[spec.secret].format(spec.setting, spec.dataset)


def runs(results: Results) -> dict[tuple[str, int, str], list[Spec]]:
    """The runs by what is guessed, number of attacked clients, and what the attacker sees."""
    found: dict[tuple[str, int, str], list[Spec]] = {}
    for spec in results.specs:
        for view in VIEWS:
            found.setdefault((secret(spec), spec.clients, view), []).append(spec)
    return found


def guessed_by_seed(results: Results) -> dict[tuple[str, int, str], dict[int, float]]:
    """Share of right guesses, mean over the attacked rounds, by the keys of :func:`runs` and by seed."""
    return {
        key: {record.spec.seed: float(_shares(record, key[2]).mean()) for record in _done(results, specs)}
        for key, specs in runs(results).items()
    }


def _shares(record: Record, view: str) -> np.ndarray:
    """Share of right guesses in each attacked round."""
    found = record.data["privacy"]
    return np.array(found["correct"][view]) / found["targets"]


def _done(results: Results, specs: list[Spec]) -> Iterator[Record]:
    records = (results.record(spec) for spec in specs)
    return (record for record in records if record is not None and record.status == "done")


def guess_curves(results: Results, views: Mapping[str, str]) -> pd.DataFrame:
    """Right guesses in per cent in each attacked round, for :func:`fgl_core.plots.curves.per_round`.

    Pure guessing is a line of its own.

    Args:
        views: of :data:`~fgl_core.analysis.privacy.VIEWS`, and what to call them.
    """
    rows = []
    for record in _done(results, results.specs):
        found = record.data["privacy"]
        lines = {name: _shares(record, view) for view, name in views.items()}
        lines[CHANCE] = np.full(len(found["rounds"]), 1 / found["classes"])
        for method, values in lines.items():
            for number, value in zip(found["rounds"], 100 * values, strict=True):
                rows.append((secret(record.spec), method, method, record.spec.seed, number, value))
    return pd.DataFrame(rows, columns=["dataset", "method", "name", "seed", "round", "value"])


def guess_table(results: Results) -> Styler:
    """Right guesses in per cent, mean ± standard deviation over seeds: rows views, columns secrets."""
    values, rows = guessed_by_seed(results), []
    for (asked, clients, view), specs in runs(results).items():
        mean, std = mean_std(list(values[asked, clients, view].values()))
        text = f"{100 * mean:.1f}" + ("" if np.isnan(std) else f" ± {100 * std:.1f}")
        rows.append((asked, view, "missing" if np.isnan(mean) else text))
        if view == list(VIEWS)[-1]:
            classes = {record.data["privacy"]["classes"] for record in _done(results, specs)}
            rows.append((asked, CHANCE, f"{100 / classes.pop():.1f}" if classes else "missing"))
    frame = pd.DataFrame(rows, columns=["dataset", "method", "text"])
    caption = "Right guesses in %, mean over the attacked rounds, ± standard deviation over seeds"
    return wide_table(frame, frame["text"], caption, columns="dataset", uuid="guesses")


def gains(results: Results, pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """How much more an attacker finds out from one view than from another, seed by seed.

    Args:
        pairs: two views, by the name of their contrast.

    Returns:
        What :func:`fgl_core.tables.contrasts.contrasts` returns, with secrets as datasets.
    """
    values = guessed_by_seed(results)
    rows = [
        {
            "dataset": asked,
            "clients": clients,
            "method": name,
            "name": "",
            "measure": OWN,
            **paired(*(values[asked, clients, view] for view in pair)),
        }
        for asked, clients in dict.fromkeys(key[:2] for key in values)
        for name, pair in pairs.items()
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(p_holm=holm(list(frame["p"])), best=False)


def hash_table(results: Results) -> Styler:
    """What the bits keep: their correlation with the numbers, and how many bits a single graph changes."""
    rows = {}
    for asked, clients in dict.fromkeys(key[:2] for key in runs(results)):
        records = list(_done(results, runs(results)[asked, clients, "signature"]))
        found = [record.data["privacy"] for record in records]
        counts = [np.array(one["changed_bits"]) for one in found]
        rows[asked] = {
            "correlation of bits and numbers": _mean([np.mean(one["kept"]) for one in found], "{:.2f}"),
            "graphs that change no bit, %": _mean([100 * c[0] / c.sum() for c in counts], "{:.0f}"),
            "bits changed by a graph": _mean([c @ np.arange(len(c)) / c.sum() for c in counts], "{:.2f}"),
        }
    caption = "The signature: what it keeps of the 64 numbers, and what leaving out one graph does to it"
    return pd.DataFrame.from_dict(rows, orient="index").style.set_uuid("hash").set_caption(caption)


def _mean(values: list[float], form: str) -> str:
    return form.format(np.mean(values)) if values else "missing"
