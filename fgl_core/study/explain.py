"""What a run sends: every tensor of its models and every message beside them, known without training.

Everything is asked of the code that trains: the run is set up as for training, and the method's own hooks say
what travels and what is reported. So the ledger of a record must agree, and a test holds it to that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from torch import nn

from fgl_core.study.execute import arithmetic
from fgl_core.study.setup import Setup

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True)
class TensorRow:
    """One tensor of the model, as some of the clients have it.

    Attributes:
        part: of the model, e.g. ``convs.0``.
        kind: the part's class.
        name: within the part.
        bytes: its size.
        travels: whether it is sent to the client before, and to the server after local training.
        clients: positions of the clients whose tensor has this shape.
    """

    part: str
    kind: str
    name: str
    shape: tuple[int, ...]
    bytes: int
    travels: bool
    clients: tuple[int, ...]


@dataclass(frozen=True)
class Explanation:
    """What the models of a run consist of, and what its clients send and receive.

    Attributes:
        clients: their names.
        tensors: in the model's order.
        up, down: bytes of each client in each round, by kind of message.
        before_up, before_down: bytes of all clients together before the first round, by kind of message.
    """

    clients: list[str]
    tensors: list[TensorRow]
    up: Mapping[str, list[int]]
    down: Mapping[str, list[int]]
    before_up: Mapping[str, int] = field(default_factory=dict)
    before_down: Mapping[str, int] = field(default_factory=dict)

    def ledger(self, rounds: int) -> dict[str, dict[str, list[int]]]:
        """Bytes of all clients together ``up`` and ``down``, by kind, in each round, as records hold them.

        What is sent before the first round counts in it.
        """
        return {
            "up": _by_round(self.before_up, self.up, rounds),
            "down": _by_round(self.before_down, self.down, rounds),
        }


def explain(setup: Setup) -> Explanation:
    """What the run would send.

    Nothing is trained but what a method trains before the first round: the size of what FedSage+ sends then
    depends on how many neighbours its generators make up.
    """
    method = setup.spec.method
    with arithmetic():
        prepared = method.prepare(setup.clients, setup.spec.streams)
    travels = set(method.travels(setup.models[0]))
    model = [
        sum(tensor.nbytes for name, tensor in local.state_dict().items() if name in travels)
        for local in setup.models
    ]
    up = {"model": model}
    for index, (client, local) in enumerate(zip(prepared.clients, setup.models, strict=True)):
        for kind, values in method.report(client, local).items():
            up.setdefault(kind, [0] * len(model))[index] = values.nbytes
    return Explanation(
        clients=[client.name for client in setup.clients],
        tensors=_tensors(setup.models, travels),
        up=up,
        down={"model": model},
        before_up=prepared.bytes_up,
        before_down=prepared.bytes_down,
    )


def alike(values: Sequence[Value]) -> dict[Value, tuple[int, ...]]:
    """The positions of each value, in the order in which the values first occur."""
    positions: dict[Value, list[int]] = defaultdict(list)
    for position, value in enumerate(values):
        positions[value].append(position)
    return {value: tuple(found) for value, found in positions.items()}


def _by_round(before: Mapping[str, int], each: Mapping[str, list[int]], rounds: int) -> dict[str, list[int]]:
    sizes = {kind: sum(each.get(kind, ())) for kind in dict.fromkeys([*before, *each])}
    return {kind: [before.get(kind, 0) + size, *[size] * (rounds - 1)] for kind, size in sizes.items()}


def _tensors(models: Sequence[nn.Module], travels: set[str]) -> list[TensorRow]:
    states = [model.state_dict() for model in models]
    rows = []
    for name in states[0]:
        part, module = _part(models[0], name)
        for (shape, size), clients in alike(
            [(tuple(state[name].shape), state[name].nbytes) for state in states]
        ).items():
            inner = name.removeprefix(f"{part}.")
            rows.append(TensorRow(part, type(module).__name__, inner, shape, size, name in travels, clients))
    return rows


def _part(model: nn.Module, name: str) -> tuple[str, nn.Module]:
    """The part of the model that a tensor is in: a child, or an entry of a list of children."""
    path: list[str] = []
    module = model
    for step in name.split(".")[:-1]:
        path.append(step)
        module = module.get_submodule(step)
        if not isinstance(module, nn.ModuleList):
            break
    return ".".join(path), module
