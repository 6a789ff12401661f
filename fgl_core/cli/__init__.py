"""The ``fgl`` command. Each command lives in a module of its own, which is imported only when it is used."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from fgl_core import __version__
from fgl_core.errors import InputError
from fgl_core.study.store import RecordWarning

BAD_INPUT, STOPPED = 2, 130

app = App(
    name="fgl",
    help="Federated graph learning, rerun: train, repeat studies, render notebooks.",
    version=f"fgl {__version__}",
    help_format="plaintext",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
data = App(name="data", help="Datasets: what there is, fetch, verify.")
study = App(name="study", help="Studies: run what is missing, see what is there.")
app.command(data)
app.command(study)

for group, name, target, purpose in (
    (app, "run", "run:run", "Train once, write a record, print what came out."),
    (app, "tune", "tune:tune", "Search for good values, for every method, with the same effort."),
    (app, "explain", "explain:explain", "What a run would send: each tensor, its size, whether it travels."),
    (app, "methods", "run:methods", "Every method with its parameters."),
    (app, "new-method", "new_method:new_method", "The files of a method of your own, to be changed."),
    (app, "decisions", "run:list_decisions", "What the papers leave open: the options of --decide."),
    (app, "render", "notebooks:render", "Run a notebook with other parameters, make a page of it."),
    (data, "list", "data:show", "Every dataset: where it is, how large, its licence."),
    (data, "fetch", "data:fetch", "Bring datasets into the cache, checked."),
    (data, "add", "data:add", "Check own data, and give the name that runs take."),
    (data, "verify", "data:verify", "Check the cached files against the registry."),
    (study, "list", "study:show", "Every study and how much of it is recorded."),
    (study, "status", "study:status", "What a study has, and what it lacks and why."),
    (study, "run", "study:run", "Compute what a study lacks; go on where it was stopped."),
    (study, "export", "study:export", "A study's records as one table, CSV or Parquet."),
):
    group.command(f"fgl_core.cli.{target}", name=name, help=purpose)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    What the user can mend is one line on stderr and status 2. Anything else keeps its traceback.
    """
    warnings.showwarning = _show_warning
    try:
        status = app(sys.argv[1:] if arguments is None else arguments) or 0
        print(end="", flush=True)  # a full disk shows here, not after the last line of this program
        return status
    except (InputError, CycloptsError) as error:
        return _complain(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        return _complain("stopped", STOPPED)
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        sys.stdout = None
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        sys.stdout = None
        return _complain("the disk is full: make room, or send the output elsewhere", BAD_INPUT)


def _complain(message: str, status: int) -> int:
    line = " ".join(message.split())
    print(f"fgl: {line[:1].lower()}{line[1:]}", file=sys.stderr)
    return status


_show_elsewhere = warnings.showwarning


def _show_warning(message, category, *where, **more) -> None:  # type: ignore[no-untyped-def]
    if issubclass(category, RecordWarning):
        _complain(f"warning: {message}", 0)
    else:
        _show_elsewhere(message, category, *where, **more)
