"""Tuned values: those that were chosen for a dataset and a method, and the runs that take them.

They stand in ``data/tuned.toml``, which :mod:`fgl_core.study.tuning` writes and a wheel carries inside the
package. A project root of its own (``FGL_HOME``) may hold one too; its datasets come first.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from fgl_core.errors import InputError, reason
from fgl_core.root import project_root, shipped
from fgl_core.study.spaces import SPACES, selection, space_of
from fgl_core.study.spec import NodeSpec

FILE = Path("data", "tuned.toml")
HEAD = """\
# Learning rates and methods' own values, chosen by `fgl tune` on validation accuracy alone from the trials in
# data/tuning/. Not written by hand: a test derives this file anew.
"""


#: Of what is read from files: values are numbers, and nothing is added.
CHECKED = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, config=CHECKED)
class Choice:
    """The values chosen for a method on a dataset.

    Attributes:
        lr: the learning rate of the clients.
        method: the method's own values.
        val_accuracy: what they reached: mean over seeds of the best validation accuracy.
        trials: among how many trials they were chosen.
        sha256: of those trials.
    """

    lr: float
    val_accuracy: float
    trials: int
    sha256: str
    method: Mapping[str, float] = field(default_factory=dict)

    def check(self, dataset: str, name: str) -> None:
        """See that a run on the dataset can take the values that the search space ``name`` has.

        Raises:
            InputError: it cannot.
        """
        space = selection([name])[name]
        if self.method.keys() != space.ranges.keys():
            wanted = ", ".join(space.ranges) or "none"
            raise InputError(f"values of {name}: {', '.join(self.method) or 'none'}, not {wanted}")
        NodeSpec.parse({"dataset": dataset, "lr": self.lr, "method": {**space.method, **self.method}})


Choices = Mapping[str, Mapping[str, Choice]]  # by dataset and name of the search space


def tuned_values() -> dict[str, dict[str, Choice]]:
    """The chosen values by dataset and search space; empty where nothing was tuned.

    Raises:
        InputError: a file that cannot be read as such.
    """
    found: dict[str, dict[str, Choice]] = {}
    for path in dict.fromkeys((shipped(__file__, str(FILE)), project_root() / FILE)):
        if path.is_file():
            found |= read_choices(path)
    return found


def read_choices(path: Path) -> dict[str, dict[str, Choice]]:
    """The chosen values in a file.

    Raises:
        InputError: it does not hold what :func:`format_choices` writes.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        found = {
            dataset: {name: Choice(**values) for name, values in methods.items()}
            for dataset, methods in table.items()
        }
        for dataset, methods in found.items():
            for name, choice in methods.items():
                choice.check(dataset, name)
    except (ValueError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise InputError(
            f"{path} is not as `fgl tune` writes it ({reason(error)}); run `fgl tune` again"
        ) from None
    return found


def format_choices(choices: Choices) -> str:
    """Chosen values as TOML, sorted."""
    parts = [HEAD]
    for dataset, methods in sorted(choices.items()):
        for name, choice in sorted(methods.items()):
            lines = [
                f"[{_key(dataset)}.{_key(name)}]",
                f"lr = {choice.lr!r}",
                *(f"method.{own} = {value!r}" for own, value in sorted(choice.method.items())),
                f"val_accuracy = {choice.val_accuracy!r}",
                f"trials = {choice.trials}",
                f'sha256 = "{choice.sha256}"',
            ]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def with_tuned(spec: NodeSpec, choices: Choices) -> NodeSpec:
    """A run with the values chosen for its dataset and method; the run itself where there are none.

    Only what has its value from before tuning is filled in. What a study sets to something else stays, such
    as a weight of zero or the learning rate of a released configuration.
    """
    name = space_of(spec.method)
    choice = choices.get(spec.dataset, {}).get(name)
    if choice is None:
        return spec
    values = spec.model_dump(mode="json")
    if spec.lr == NodeSpec.model_fields["lr"].default:
        values["lr"] = choice.lr
    defaults = SPACES[name].defaults
    own = values["method"]
    if spec.method.name == SPACES[name].method["name"]:
        own |= {key: value for key, value in choice.method.items() if own[key] == defaults[key]}
    elif spec.method.name == "fgssl-released" and spec.method.lambda_c == 2 * defaults["lambda_c"]:
        # this method halves its weight: where that was FGSSL's weight, as in the ladder, it stays so
        own["lambda_c"] = 2 * choice.method["lambda_c"]
    return NodeSpec.parse(values)


def tuning_of(specs: Iterable[NodeSpec], choices: Choices) -> str:
    """In words: on which datasets runs take chosen values, and which methods do not.

    Args:
        specs: the runs, before or after :func:`with_tuned`.
    """
    used: dict[str, dict[str, None]] = {}
    for spec in specs:
        if name := space_of(spec.method):
            used.setdefault(spec.dataset, {})[name] = None
    tuned, rest = [], []
    for dataset, names in used.items():
        lacking = [SPACES[name].title for name in names if name not in choices.get(dataset, {})]
        if len(lacking) == len(names):
            rest.append(dataset)
        else:
            tuned.append(f"{dataset} (but for {', '.join(lacking)})" if lacking else dataset)
    parts = [f"tuned on {', '.join(tuned)}"] if tuned else []
    parts += [f"defaults on {', '.join(rest)}, not tuned yet"] if rest else []
    return "; ".join(parts)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
