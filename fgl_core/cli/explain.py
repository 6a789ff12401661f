"""``fgl explain``: what a run would send."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from fgl_core.cli.flags import takes_flags
from fgl_core.cli.run import bring_data, title
from fgl_core.study.spec import GraphSpec, RunSpec

if TYPE_CHECKING:
    from fgl_core.study.explain import Explanation


@takes_flags
def explain(spec: RunSpec) -> int:
    """Print each tensor of the model, whether it travels, and how many bytes a run sends.

    Nothing is trained, but for the generators of FedSage+, whose messages depend on it.
    """
    bring_data(spec)
    from fgl_core.study.explain import explain as explained  # imports torch
    from fgl_core.study.setup import set_up

    explanation = explained(set_up(spec))
    number = len(explanation.clients)
    place = "the whole graph" if spec.method.centralised else f"{number} client{'s' * (number > 1)}"
    norm = f", norm {spec.norm}" if isinstance(spec, GraphSpec) else f", backbone {spec.backbone}"
    print(f"{title(spec)}, {place}{norm}, hidden {spec.hidden}")
    for lines in (_tensors(explanation), _messages(explanation), _totals(explanation, spec.rounds)):
        print("\n" + "\n".join(lines))
    return 0


def _tensors(explanation: Explanation) -> list[str]:
    """A line per tensor, below a line per part of the model."""
    rows: list[list[str]] = []
    for (part, kind), tensors in groupby(explanation.tensors, lambda row: (row.part, row.kind)):
        rows.append([f"{part} ({kind})", "", "", "", ""])
        for row in tensors:
            shape = " × ".join(map(str, row.shape)) or "one number"
            way = "up, down" if row.travels else "stays"
            rows.append(["  " + row.name, shape, _bytes(row.bytes), way, _named(explanation, row.clients)])
    return _aligned([["tensor", "shape", "size", "travels", "clients"], *rows])


def _messages(explanation: Explanation) -> list[str]:
    """A line per kind of message and group of clients that send and receive as much."""
    from fgl_core.study.explain import alike

    nothing = [0] * len(explanation.clients)
    kinds = dict.fromkeys([*explanation.up, *explanation.down])
    each = {
        kind: list(zip(explanation.up.get(kind, nothing), explanation.down.get(kind, nothing), strict=True))
        for kind in kinds
    }
    if len(each) > 1:
        sums = [
            [sum(sizes) for sizes in zip(*sent, strict=True)] for sent in zip(*each.values(), strict=True)
        ]
        each["together"] = [(up, down) for up, down in sums]
    rows = [
        ["  " + kind, _bytes(up), _bytes(down), _named(explanation, clients)]
        for kind, sent in each.items()
        for (up, down), clients in alike(sent).items()
    ]
    return _aligned([["each client in each round", "up", "down", "clients"], *rows])


def _totals(explanation: Explanation, rounds: int) -> list[str]:
    """What all clients send before the first round, in a round, and in the whole run."""
    before = {
        kind: (explanation.before_up.get(kind, 0), explanation.before_down.get(kind, 0))
        for kind in dict.fromkeys([*explanation.before_up, *explanation.before_down])
    }
    ledger = explanation.ledger(rounds)
    sums = {way: sum(map(sum, ledger[way].values())) for way in ("up", "down")}
    each = [sum(map(sum, sent.values())) for sent in (explanation.up, explanation.down)]
    rows = [[f"  before the first round, {kind}", *map(_bytes, sent)] for kind, sent in before.items()]
    rows.append(["  a round", *map(_bytes, each)])
    rows.append([f"  {rounds} round{'s' * (rounds > 1)}", *map(_bytes, sums.values())])
    return _aligned([["all clients together", "up", "down"], *rows])


def _named(explanation: Explanation, clients: Sequence[int]) -> str:
    if len(clients) == len(explanation.clients):
        return "all"
    return ", ".join(explanation.clients[client] for client in clients)


def _bytes(count: int) -> str:
    return f"{count:,} B" if count else "-"


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns of text: the first and the last to the left, sizes to the right."""
    rows = list(rows)
    sizes = {at for row in rows[1:] for at, cell in enumerate(row) if cell.endswith(" B")}
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in sizes else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
