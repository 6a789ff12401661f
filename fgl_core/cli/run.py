"""``fgl run``, ``fgl methods`` and ``fgl decisions``: one run, and what can be set."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from fgl_core.cli.data import fetching
from fgl_core.cli.flags import flag, range_of, source_of, takes_flags
from fgl_core.datasets.own import is_own, noted
from fgl_core.datasets.sources import fetch
from fgl_core.device import choose
from fgl_core.errors import InputError
from fgl_core.methods import METHODS
from fgl_core.study.costs import datasets_of
from fgl_core.study.decisions import decisions
from fgl_core.study.spec import RunSpec
from fgl_core.study.store import Store, check_writable, write_record

if TYPE_CHECKING:
    from fgl_core.federation import Round


@takes_flags
def run(spec: RunSpec, device: str | None = None) -> int:
    """Train once, write a record to data/runs, print what came out.

    The round reported is the one of the best validation accuracy; test accuracy never chooses it.
    """
    choose(device)
    store = Store()
    check_writable(store.runs)
    bring_data(spec)
    record = _train(spec)
    path = write_record(record, store.runs)
    print(_report(spec, record))
    for name in filter(is_own, spec.datasets):
        print(f"data: {name}: {noted(name).summary}")
    print(f"record: {path}")
    return 0


def methods() -> None:
    """Every method with its parameters: default, range, meaning, source."""
    for name, method in METHODS.items():
        source = f" ({method.paper})" if "paper" in vars(method) else ""
        print(f"{name}: {method.title}{source}")
        print(f"  {_first_line(method)}")
        rows = [
            (flag(key), str(field.default), range_of(field), field.description or "", source_of(field))
            for key, field in method.model_fields.items()
            if key != "name"
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print(
                "    "
                + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            )
        print()


def list_decisions() -> None:
    """What the papers leave open and can be decided in another way: options, the default first."""
    for id, decision in decisions().items():
        if decision.options:
            others = [option for option in decision.options if option != decision.default]
            default = [f"{decision.default} (default)"] if decision.default else []
            print(f"{id}: {decision.question}")
            print(f"  {', '.join([*default, *others])}")


def bring_data(spec: RunSpec) -> None:
    """Fetch what a run needs, with a progress bar where bytes have to come."""
    with fetching() as progress:
        fetch(datasets_of(spec), progress)


def _train(spec: RunSpec) -> dict[str, Any]:
    from tqdm import tqdm

    with ExitStack() as bars:

        def draw() -> tqdm:
            bar = tqdm(total=spec.rounds, desc=title(spec), unit="round", file=sys.stderr)
            return bars.enter_context(bar)

        # into a file, nothing is drawn before the first round: an error stays a single line
        bar = draw() if sys.stderr.isatty() else None
        from fgl_core.study.execute import execute  # imports torch: the bar is seen while it loads

        if bar is not None:
            bar.reset()  # the time left is judged by rounds alone

        def advance(measured: Round, values: Mapping[str, Any]) -> None:
            nonlocal bar
            if bar is None:
                bar = draw()
            curves = values["curves"]
            bar.set_postfix(
                loss=f"{curves['loss']:.3f}",
                val=f"{curves['val_accuracy']:.1%}",
                test=f"{curves['test_accuracy']:.1%}",
                refresh=False,
            )
            bar.update()

        try:
            return execute(spec, on_round=advance)
        except InputError:
            if bar is not None:
                bar.leave = False  # nothing was trained: the message stands alone
            raise


def title(spec: RunSpec) -> str:
    """What is run on what."""
    return f"{spec.method.title} on {spec.place}"


def _report(spec: RunSpec, record: Mapping[str, Any]) -> str:
    number = len(record["partition"]["clients"])
    clients = "the whole graph" if spec.method.centralised else f"{number} client{'s' * (number > 1)}"
    seconds = record["timing"]["seconds"]
    lines = [f"{title(spec)}, {clients}, seed {spec.seed}: {seconds:.1f} s"]
    if record["status"] == "diverged":
        lines.append(f"diverged: {record['reason']}; what was measured before:")
    for moment, name in (("best", "best validation"), ("last", "last")):
        if values := record[moment]:
            lines.append(
                f"{name} round, {values['round']} of {spec.rounds}: "
                f"val {values['val_accuracy']:.1%}, test {values['test_accuracy']:.1%}"
            )
            if (everywhere := values.get("everywhere_test_accuracy")) is not None:
                lines[-1] += f" (each client's model on all test nodes: {everywhere:.1%})"
    sent = {
        way: {kind: sum(rounds) for kind, rounds in kinds.items()} for way, kinds in record["bytes"].items()
    }
    lines.append("travelled: " + "; ".join(f"{way} {_megabytes(kinds)}" for way, kinds in sent.items()))
    return "\n".join(lines)


def _megabytes(kinds: Mapping[str, int]) -> str:
    kinds = {kind: count for kind, count in kinds.items() if count}
    return ", ".join(f"{count / 1e6:.1f} MB ({kind})" for kind, count in kinds.items()) or "nothing"


def _first_line(method: type) -> str:
    return (inspect.getdoc(method) or "").splitlines()[0]
