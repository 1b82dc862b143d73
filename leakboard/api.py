"""The functions of the public API. They import what they need when they are called: torch takes seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from leakboard.bench.contracts import LeakboardError, did_you_mean, path_of

if TYPE_CHECKING:
    from rich.console import Console

    from leakboard.bench.conformance import Report
    from leakboard.bench.methods import Attack, Defense
    from leakboard.bench.running import Engine
    from leakboard.bench.suites import Suite
    from leakboard.bench.tuning import Tuning
    from leakboard.leaderboards.findings import Finding
    from leakboard.leaderboards.results import Results
    from leakboard.leaderboards.tables import Choice, Difference, Result


def run(
    suite: str | Path | Mapping[str, Any] | Suite,
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    task: Any = None,
    model: Any = None,
    seeds: int | Sequence[int] | None = None,
    limit: int | None = None,
    evaluate: str | None = None,
    transcripts: str | Path | None = None,
    workers: int | Engine = 1,
    progress: bool | Console = True,
    log_to: str | None = None,
) -> Results:
    """Runs what is missing of a suite. Interrupt it at will; the same call goes on.

    Args:
        suite: the name of a built-in one, the path of a YAML file, or a dict with the keys of such a
            file: `{"name": "mine", "task": "reviews", "defenses": ["none", {"sap": {"eta": [75, 50]}}]}`.
            In a dict, defenses and attacks may also be classes and configured ones, of your own as well.
        out: folder of the records; without it `results/local/NAME`.
        data: folder of datasets, one folder each with train.tsv, dev.tsv, test.tsv.
        device: cpu, cuda, cuda:1, …, or auto.
        task, model, seeds, limit, evaluate: instead of the suite's, the first three one or a list; `limit`
            is the largest number of examples of each split, `evaluate` the split that is reported.
        transcripts: folder in which the transcript of each cell that is run is kept.
        workers: processes of this machine; or an `Engine`, which also knows Ray, and parts of a suite.
        progress: shown on a terminal; False shows nothing. A console of rich is written to in any case.
        log_to: 'mlflow', to log settings, curves and artefacts of each cell there, by MLFLOW_TRACKING_URI; or
            its address behind a colon, as in 'mlflow:sqlite:///runs.db'.

    Returns:
        The records of all cells, those that were there already among them.

    Raises:
        LeakboardError: whatever is wrong with an argument; the suite's mistakes all at once.
        MissingExtra: of `log_to`.
    """
    from leakboard.bench.backbones import device_of
    from leakboard.bench.records import Store
    from leakboard.bench.running import (
        Engine,
        TrackingReporter,
        check_tracker,
        make_plan,
        plan_notes,
        progress_console,
        reporter_on,
    )
    from leakboard.bench.suites import load_suite
    from leakboard.leaderboards.results import LOCAL, Results

    engine = workers if isinstance(workers, Engine) else Engine(workers)
    if log_to is not None:
        check_tracker(log_to)
    given = {"task": task, "model": model, "seeds": seeds, "limit": limit, "evaluate": evaluate}
    loaded = load_suite(suite).override(**given)
    folder = path_of("out", out) or LOCAL / loaded.name
    kept, console = path_of("transcripts", transcripts), progress_console(progress)
    with console.status("loading data and models") if console else nullcontext():
        plan = engine.part(make_plan(loaded, path_of("data", data), device_of(device)))
    if console:
        for note in plan_notes(plan):
            console.print(note, highlight=False, markup=False)
    with reporter_on(console, len(plan.cells)) as reporter:
        told = reporter if log_to is None else TrackingReporter(reporter, log_to, loaded.name)
        records = engine.run(plan, Store(folder), told, path_of("data", data), kept)
    return Results.of(records, loaded.name, loaded, [folder])


def tune(
    suite: str | Path | Mapping[str, Any] | Suite,
    to: str | Path | None = None,
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int | Engine = 1,
    progress: bool | Console = True,
    **instead: Any,
) -> Tuning:
    """Chooses how each row of a suite is trained, on a fifth of the training split that is held out for it.

    Args:
        suite, data, device, workers, progress: as for `run`.
        to: the .yaml file of the suite with what was chosen, for `run`.
        out: folder of the records of the trials; without it `results/local/NAME-trials`.
        instead: `task`, `model`, `seeds`, `limit` or `evaluate`, as for `run`.

    Returns:
        `suite`, `choices`, `records` of all trials.

    Raises:
        LeakboardError: whatever is wrong with an argument; or the suite reports on what is selected on.
    """
    from leakboard.bench.backbones import device_of
    from leakboard.bench.running import Engine, progress_console
    from leakboard.bench.suites import load_suite
    from leakboard.bench.tuning import check_file, write_tuned_suite
    from leakboard.bench.tuning import tune as chosen
    from leakboard.leaderboards.results import LOCAL

    engine = workers if isinstance(workers, Engine) else Engine(workers)
    loaded, console = load_suite(suite).override(**instead), progress_console(progress)
    target, folder = path_of("to", to), path_of("out", out) or LOCAL / f"{loaded.name}-trials"
    if target is not None:
        check_file(loaded, target)
    found = chosen(loaded, folder, console, path_of("data", data), device_of(device), engine)
    if target is not None:
        write_tuned_suite(found, target, folder)
    return found


def choose(
    task: str = "sst2",
    hide: str = "inputs",
    max_cost: float = 3.0,
    records: Results | None = None,
    *,
    model: str | None = None,
) -> Choice:
    """Which setting leaks least of something within a budget, and by which evidence.

    The answer is a setting only where records show that it helps: an attack works without the defense, the setting
    clearly leaks less, and its cost may be compared. Of an attack that nobody ran it says nothing.

    Args:
        hide: inputs, labels, attributes, secrets, members or model; other names of these, too; or several at once,
            such as "texts and labels".
        max_cost: points of utility that may be lost on the mean: 3 for an accuracy that falls from 0.85 to 0.82.
        records: among these; without them among the published ones.
        model: only settings of this one.

    Returns:
        The setting with its evidence; or none, why, and what comes nearest. It is true where there is
        a setting.

    Raises:
        LeakboardError: an unknown word, no number of points, or no records of the task.
    """
    from leakboard.leaderboards.results import published
    from leakboard.leaderboards.tables import check_budget, goals_asked
    from leakboard.leaderboards.tables import choose as chosen

    goals_asked(hide)
    check_budget(max_cost)
    if 0 < max_cost < 0.1:  # it was a share once
        raise LeakboardError(
            f"max_cost: points of utility, not a share: for {max_cost:g} of it give {100 * max_cost:g}"
        )
    among = published() if records is None else _results(records)
    return chosen(among.table, task, hide, max_cost, model)


def compare(
    a: Result, b: Result, metric: Literal["leakage", "success", "utility", "cost"] = "leakage"
) -> Difference:
    """By how much a metric is larger in one row of `Results.table` than in another, paired over seeds.

    Args:
        metric: leakage and success as shares, utility and cost in points.

    Returns:
        The mean with its 95 % interval, p and verdict: less, more or undecided; or the `reason` why the two cannot
        be compared.

    Raises:
        LeakboardError: no row, or an unknown metric.
    """
    from typing import get_args

    from leakboard.leaderboards.tables import Metric, Result
    from leakboard.leaderboards.tables import compare as compared

    for name, row in (("a", a), ("b", b)):
        if not isinstance(row, Result):
            raise LeakboardError(f"{name}: expected a row of `Results.table`, got {_kind(row)}")
    if metric not in get_args(Metric):
        raise LeakboardError(
            f"metric: unknown '{metric}'. {did_you_mean(str(metric), get_args(Metric))}"
        )
    return compared(a, b, metric)


def findings(*folders: str | Path, rule: str | None = None) -> list[Finding]:
    """What records show, as claims with their numbers: each from a rule, with the records behind it.

    Args:
        folders: of records, or the names of suites that were run; without any the published records.
        rule: only what this one finds, such as elsewhere.

    Raises:
        LeakboardError: no records, or no such rule.
    """
    from leakboard.leaderboards.results import load, published

    among = load(*folders) if folders else published()
    return among.findings(rule)


def check(method: str | Path | type[Defense | Attack] | Defense | Attack) -> Report:
    """Whether a defense or an attack keeps the rules, on a tiny model, in seconds.

    Args:
        method: a class, a configured one, the name of a registered one, or `path/to/file.py`.

    Raises:
        LeakboardError: it is none of these.
        MissingExtra: it needs an optional part that is not installed.
    """
    from leakboard.bench.conformance import check_method

    return check_method(method)


def _results(records: object) -> Results:
    from leakboard.leaderboards.results import Results

    if not isinstance(records, Results):
        raise LeakboardError(
            f"records: expected Results, as `load` returns them, got {_kind(records)}"
        )
    return records


def _kind(value: object) -> str:
    return f"{type(value).__name__} {value!r:.60}"
