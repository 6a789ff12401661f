"""What is tuned: the values of each node-level method, and the range of each value.

The learning rate belongs to every method and has the same range for all; :data:`SPACES` adds the values that
are a method's own. Ranges are logarithmic, and none of them is the papers': they say nothing of these values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fgl_core.errors import unknown
from fgl_core.methods import METHODS, Method

LEARNING_RATES = (0.01, 1.0)


@dataclass(frozen=True)
class Space:
    """The search space of a method.

    Attributes:
        title: in tables.
        method: the method before tuning, as a spec takes it. What is not in ``ranges`` stays so.
        ranges: the lowest and the highest value of each of its own parameters that are tuned.
        check: tuned to be looked at only; no table's runs take the values.
    """

    title: str
    method: Mapping[str, Any]
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    check: bool = False

    @cached_property
    def untuned(self) -> Method:
        """The method with the values it has before tuning."""
        return METHODS[self.method["name"]](**self.method)

    @property
    def defaults(self) -> dict[str, float]:
        """Its own tuned parameters at their values before tuning."""
        return {name: getattr(self.untuned, name) for name in self.ranges}

    def holds(self, method: Method) -> bool:
        """Whether ``method`` is this one, whatever its tuned parameters."""
        fixed = {name: value for name, value in self.method.items() if name not in self.ranges}
        return all(getattr(method, name, None) == value for name, value in fixed.items())


_SERVER = {"server_lr": (1e-3, 1.0)}
_CONTRAST, _DISTILLATION = {"lambda_c": (0.1, 3.0)}, {"lambda_d": (0.1, 30.0)}
SPACES: dict[str, Space] = {
    "local": Space("Local", {"name": "local"}),
    "global": Space("Global", {"name": "global"}),
    "fedavg": Space("FedAvg", {"name": "fedavg"}),
    "fedprox": Space("FedProx", {"name": "fedprox"}, {"mu": (1e-4, 1.0)}),
    "fedopt": Space("FedOpt", {"name": "fedopt", "server_optimizer": "adam"}, _SERVER),
    # a whole step of SGD is FedAvg, so it starts from half of one
    "fedopt-sgd": Space(
        "FedOpt, SGD", {"name": "fedopt", "server_optimizer": "sgd", "server_lr": 0.5}, _SERVER
    ),
    "fedsage": Space("FedSage", {"name": "fedsage"}),
    "fedsage+": Space("FedSage+", {"name": "fedsage+"}),
    "fgssl": Space("FGSSL", {"name": "fgssl"}, _CONTRAST | _DISTILLATION),
    "fgssl-fnsc": Space("FGSSL, FNSC only", {"name": "fgssl", "lambda_d": 0.0}, _CONTRAST, check=True),
    "fgssl-fgsd": Space("FGSSL, FGSD only", {"name": "fgssl", "lambda_c": 0.0}, _DISTILLATION, check=True),
}


def selection(names: list[str] | None) -> dict[str, Space]:
    """The spaces of these names in the order of :data:`SPACES`; all of them for ``None``.

    Raises:
        InputError: no such space; the message lists all.
    """
    for name in names or ():
        if name not in SPACES:
            raise unknown("method to tune", name, SPACES)
    return {name: space for name, space in SPACES.items() if names is None or name in names}


def space_of(method: Method) -> str | None:
    """The name of the space whose values a run with this method takes; None where there is none.

    Variants of FGSSL take FGSSL's, also those with a term switched off, and FedAvg with views takes FedAvg's.
    """
    name = {"fedavg-view": "fedavg", "fgssl-released": "fgssl", "fgssl-released-2023": "fgssl"}.get(
        method.name
    )
    spaces = (key for key, space in SPACES.items() if not space.check and space.holds(method))
    return name or next(spaces, None)
