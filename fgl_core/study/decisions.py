"""What the papers leave open and what we decided, from ``data/decisions.toml``, which explains its fields.

A decision with options can be tried in another way: an option is a set of fields of a run, or of its method's
parameters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import Any, Literal, get_args

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from fgl_core.errors import InputError, unknown
from fgl_core.methods import METHODS
from fgl_core.root import shipped
from fgl_core.study.spec import GraphSpec, RunSpec

Part = Literal["setting", "training", "measured", "fedsage", "fedcch"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Decision:
    """One point that a paper leaves open.

    Attributes:
        part: where the book's list has it, one of :data:`PARTS`.
        question: what is open.
        answer: what we do.
        mark: how sure one can be of it.
        evidence: what speaks for it.
        default: the option that a run has unless told otherwise; empty where that depends on the method.
        options: flat fields of a run, the method's parameters among them, by the option's name.
    """

    part: Part
    question: str
    answer: str
    mark: Literal["inferred", "decided"]
    evidence: str = ""
    default: str = ""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@cache
def decisions() -> dict[str, Decision]:
    """Every decision by its id, in the order of the book."""
    text = shipped(__file__, "data/decisions.toml").read_text(encoding="utf-8")
    found = {id: Decision(**values) for id, values in tomllib.loads(text).items()}
    return dict(sorted(found.items(), key=lambda item: PARTS.index(item[1].part)))


def decided(choices: Iterable[str]) -> dict[str, Any]:
    """The fields of a run that choices such as ``momentum=keep`` set.

    Raises:
        InputError: no such decision or option, or two choices that set one field.
    """
    switches = {id: decision for id, decision in decisions().items() if decision.options}
    fields: dict[str, Any] = {}
    for choice in choices:
        id, equals, option = choice.partition("=")
        if not equals:
            raise InputError(f"--decide {choice}: write ID=OPTION, e.g. momentum=keep")
        if id not in switches:
            raise unknown("decision", id, switches)
        if option not in switches[id].options:
            raise unknown(f"option of {id}", option, switches[id].options)
        for name, value in switches[id].options[option].items():
            if name in fields:
                raise InputError(f"--decide {choice}: {name} is decided already; give each once")
            fields[name] = value
    return fields


def alternatives(method: str, kind: type[RunSpec]) -> dict[str, dict[str, Any]]:
    """What a run of ``method`` can have decided in another way, one decision at a time.

    Args:
        kind: of the run.

    Returns:
        Fields of a spec by the choice, such as ``momentum=keep``; the method's default comes first, under its
        title.
    """
    own = METHODS[method].model_fields.keys() - {"name"}
    plain = {"task": kind.model_fields["task"].default}
    found: dict[str, dict[str, Any]] = {METHODS[method].title: {"method": method}}
    taken = {RunSpec.parse({**plain, "method": method}).digest}
    for id, decision in decisions().items():
        if (decision.part == "fedcch") != issubclass(kind, GraphSpec):
            continue
        for option, fields in decision.options.items():
            if not fields.keys() <= own | kind.model_fields.keys():
                continue
            of_the_method = {name: value for name, value in fields.items() if name in own}
            rest = {name: value for name, value in fields.items() if name not in own}
            alternative = {"method": {"name": method, **of_the_method}, **rest}
            digest = RunSpec.parse({**plain, **alternative}).digest
            if digest not in taken:  # else it is what the method does by default
                taken.add(digest)
                found[f"{id}={option}"] = alternative
    return found
