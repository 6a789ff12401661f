"""What attacks on clients of FedCCH found out, from records of :mod:`fgl_core.study.privacy`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
ALL = "mean of all secrets"
SECRETS = {
    "set": "which set of {0}",
    "classes": "share of the first class, {1}",
    "size": "large or small graphs, {1}",
    "member": "one graph's membership, {1}",
}
Asked = tuple[str, int, str]  # what is guessed, number of attacked clients, what the attacker sees


def secret(spec: PrivacySpec) -> str:
    """What is guessed, in words."""
    return SECRETS[spec.secret].format(spec.setting, spec.dataset)


def runs(results: Results) -> dict[Asked, list[Spec]]:
    """The runs of each secret and view, and those of all secrets together. Pure guessing counts as a view."""
    found: dict[Asked, list[Spec]] = {}
    for spec in results.specs:
        for view in (*VIEWS, CHANCE):
            for asked in (secret(spec), ALL):
                found.setdefault((asked, spec.clients, view), []).append(spec)
    return dict(sorted(found.items(), key=lambda item: item[0][0] == ALL))


def guessed_by_seed(results: Results) -> dict[Asked, dict[int, float]]:
    """Share of right guesses, mean over the attacked rounds, by the keys of :func:`runs` and by seed.

    A seed counts for all secrets together when it has a run for each of them.
    """
    found: dict[Asked, dict[int, float]] = {}
    for key, specs in runs(results).items():
        records = list(_done(results, specs))
        secrets = {spec.secret for spec in specs}
        by_seed: dict[int, dict[str, float]] = {}
        for record in records:
            by_seed.setdefault(record.spec.seed, {})[record.spec.secret] = _share(record, key[2]).mean()
        whole = {seed: shares for seed, shares in by_seed.items() if shares.keys() == secrets}
        found[key] = {seed: float(np.mean(list(shares.values()))) for seed, shares in whole.items()}
    return found


def _share(record: Record, view: str) -> np.ndarray:
    """Share of right guesses in each attacked round."""
    found = record.data["privacy"]
    if view == CHANCE:
        return np.full(len(found["rounds"]), 1 / found["classes"])
    return np.array(found["correct"][view]) / found["targets"]


def _done(results: Results, specs: list[Spec]) -> Iterator[Record]:
    records = (results.record(spec) for spec in specs)
    return (record for record in records if record is not None and record.status == "done")


def guess_curves(results: Results, views: Iterable[str]) -> pd.DataFrame:
    """Right guesses in per cent in each attacked round, for :func:`fgl_core.plots.curves.per_round`.

    Args:
        views: of :data:`~fgl_core.analysis.privacy.VIEWS`; pure guessing is added.
    """
    rows = [
        (secret(record.spec), view, view, record.spec.seed, number, value)
        for record in _done(results, results.specs)
        for view in (*views, CHANCE)
        for number, value in zip(record.data["privacy"]["rounds"], 100 * _share(record, view), strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "name", "seed", "round", "value"])


def guess_table(results: Results) -> Styler:
    """Right guesses in per cent, mean ± standard deviation over seeds: rows views, columns secrets."""
    rows = []
    for (asked, _, view), by_seed in guessed_by_seed(results).items():
        mean, std = mean_std(list(by_seed.values()))
        spread = "" if np.isnan(std) or view == CHANCE else f" ± {100 * std:.1f}"
        rows.append((asked, view, "missing" if np.isnan(mean) else f"{100 * mean:.1f}{spread}"))
    frame = pd.DataFrame(rows, columns=["dataset", "method", "text"])
    caption = "Right guesses in %, mean over the attacked rounds, ± standard deviation over seeds"
    styler = wide_table(frame, frame["text"], caption, columns="dataset", uuid="guesses")
    styler.index.name = "what the attacker sees"
    return styler


def gains(results: Results, pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """How much more often an attacker is right with one view than with another, seed by seed.

    Args:
        pairs: two views or pure guessing, by the name of their contrast.

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
    for (asked, _, view), specs in runs(results).items():
        if asked == ALL or view != "signature":
            continue
        found = [record.data["privacy"] for record in _done(results, specs)]
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
