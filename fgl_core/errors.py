"""Errors that the user can mend."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import inf

from pydantic import ValidationError


class InputError(ValueError):
    """What the user gave cannot be used. The message is one line: what is wrong, and what to do."""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """The error for a name that does not exist: the nearest name, and all that are allowed.

    Args:
        kind: what the name names, e.g. ``"dataset"``.
        given: the name that was given.
        allowed: every name that would have been accepted.
    """
    names = sorted(allowed)
    by_lower_case = {name.lower(): name for name in names}
    near = get_close_matches(str(given).lower(), by_lower_case, n=1)
    hint = f" did you mean {by_lower_case[near[0]]!r}?" if near else ""
    return InputError(f"unknown {kind} {given!r}:{hint} allowed: {', '.join(names)}")


def check_between(name: str, value: float, lowest: float, highest: float = inf) -> None:
    """See that a number is in a range, ends included.

    Args:
        name: of the number, as the user knows it.

    Raises:
        InputError: it is not.
    """
    if not lowest <= value <= highest:  # not a number is in no range
        wanted = f"at least {lowest}" if highest == inf else f"{lowest} to {highest}"
        raise InputError(f"{name} is {value}: choose {wanted}")


def reason(error: Exception) -> str:
    """Why something cannot be read, in one line; of pydantic's complaints the first, with its place."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return str(cause)
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'][0].lower()}{first['msg'][1:]}"
