"""Federated methods, one per file.

A method is a frozen pydantic model: its parameters are its fields (with default, range, description and
source), its behaviour is a few hooks that the round loop calls (:mod:`fgl_core.federation`). Hooks keep no
state of their own; what the server must remember stands in ``Server.state``. Tables read methods without ever
training, so method files import torch only inside their hooks.

A file added to this folder is found by itself: every subclass of
:class:`~fgl_core.methods.fedavg.FedAvg` defined in it is a method.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from fgl_core.methods.fedavg import FedAvg

Method = FedAvg


def _discover() -> dict[str, type[Method]]:
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    found, pending = {}, [FedAvg]
    while pending:
        method = pending.pop()
        found[method.model_fields["name"].default] = method
        pending.extend(method.__subclasses__())
    return dict(sorted(found.items()))


METHODS: dict[str, type[Method]] = _discover()

__all__ = ["METHODS", "FedAvg", "Method"]
