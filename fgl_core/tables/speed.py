"""What the benchmarks measured, and what the studies cost: time, memory, download."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pandas as pd

from fgl_core.datasets.registry import entry
from fgl_core.errors import InputError, check_between
from fgl_core.methods import METHODS
from fgl_core.root import project_root
from fgl_core.study.catalogue import STUDIES, study_specs
from fgl_core.study.costs import Costs, datasets_of, duration
from fgl_core.study.store import Store


def measured(name: str) -> tuple[pd.DataFrame, str]:
    """The rows of a benchmark, and the machine they were measured on in words.

    Args:
        name: as in ``python -m benchmarks NAME``.

    Raises:
        InputError: it was not run yet.
    """
    path = project_root() / "benchmarks" / "results" / f"{name}.json"
    if not path.exists():
        raise InputError(f"no results of the benchmark {name}: run `python -m benchmarks {name}`")
    data = json.loads(path.read_text(encoding="utf-8"))
    versions = ", ".join(f"{key} {value}" for key, value in data["machine"].items() if key != "cpu")
    return pd.DataFrame(data["rows"]), f"{data['machine']['cpu']}; {versions}"


def ratios(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many times the plain loop's time: for :func:`fgl_core.plots.ratio_dots`, and as a table.

    Args:
        name: ``node`` or ``graphs``.
    """
    frame, _ = measured(name)
    titles = frame["method"].map(lambda method: METHODS[method].title)
    frame["label"] = frame["dataset"] + (", " + titles).where(frame["method"] != "local", "")
    wanted = ("plain_seconds", "package_seconds", "ratio", "plain_peak_mib", "package_peak_mib")
    table = frame.set_index("label")[[column for column in wanted if column in frame]]
    return frame, table.rename(columns=lambda column: column.replace("_", " ")).rename_axis(None)


def distances() -> pd.DataFrame:
    """How far rounds are from their limits, nearest first, by workload.

    Columns: ratio, of measured to limit; seconds measured, of the limit, and of calls alone; Gflop and GB
    that a round needs, Gflop/s and GB/s of the core.
    """
    frame = measured("limit")[0].set_index("workload").rename_axis(None).sort_values("ratio")
    heads = {"ratio": "ratio", "seconds": "measured, s", "limit_seconds": "limit, s"}
    heads |= {"calls_seconds": "calls, s", "gflop": "Gflop", "gbyte": "GB"}
    heads |= {"gflop_per_second": "Gflop/s", "gbyte_per_second": "GB/s"}
    return frame[list(heads)].rename(columns=heads)


def growth() -> pd.DataFrame:
    """Seconds and memory against what grows: columns axis, method, at (a number), seconds, peak_mib."""
    return measured("growth")[0]


def two_workers() -> dict[str, float]:
    """How many times the work of one worker two make in the same time.

    Returns:
        by kind of work: ``runs``, their start included; ``runs, started``, as in a study of hours; ``matrix
        products`` and ``copies`` of arrays, which show what the machine can do.
    """
    frame, _ = measured("workers")
    seconds = frame.pivot(index="work", columns="workers", values="seconds")
    started = seconds - frame.pivot(index="work", columns="workers", values="start")
    gains = seconds[1] / seconds[2]
    return {**gains, "runs, started": started[1]["runs"] / started[2]["runs"]}


def slower_in_the_end() -> tuple[float, dict[str, float]]:
    """What subnormal numbers cost in a long run.

    Returns:
        the share of weights that are subnormal at its end; and how many times the first rounds' seconds the
        last rounds take, by what became of such numbers: ``kept`` or ``zero``.
    """
    frame = measured("late")[0].set_index("subnormal")
    return float(frame["share"]["kept"]), (frame["last_seconds"] / frame["first_seconds"]).to_dict()


def cost_table(jobs: int) -> pd.DataFrame:
    """What each study takes: runs and time for every profile, memory of a worker, and what it downloads.

    Times are learnt from the newest records of each kind; ``about`` marks those that rest on guesses for more
    than a tenth of the runs. Memory and download are those of the profile ``paper``.

    Args:
        jobs: workers.

    Raises:
        InputError: fewer than one worker.
    """
    check_between("jobs", jobs, 1)
    store = Store()
    costs = Costs(store.load(store.results).values())
    peaks = dict(measured("footprint")[0][["data", "peak_mib"]].itertuples(index=False))
    rows = {}
    for study in STUDIES:
        specs = {profile: study_specs(study, profile) for profile in ("smoke", "lite", "paper")}
        cells: dict[str, str] = {}
        for profile, runs in specs.items():
            seconds = sum(map(costs.seconds, runs)) / jobs
            guessed = sum(not costs.learnt(spec) for spec in runs) > len(runs) / 10
            count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
            cells[profile] = f"{count}, {'about ' * guessed}{duration(seconds)}"
        paper = specs["paper"]
        known = [peaks[name] for name in {spec.place for spec in paper} if name in peaks]
        cells["memory of a worker"] = f"{max(known) / 1024:.1f} GiB" if known else ""
        cells["download"] = f"{_download({name for spec in paper for name in datasets_of(spec)}):.0f} MB"
        rows[study] = cells
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("study")


def _download(names: Iterable[str]) -> float:
    """Megabytes of the files of these datasets, as they are fetched."""
    files = 0
    for name in names:
        dataset = entry(name)
        fetched = (dataset.archive,) if dataset.archive else dataset.files
        files += sum(file.count for file in fetched if file.kind == "bytes")
    return files / 1e6
