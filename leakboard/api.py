"""Functions of the public API. They import torch and other slow modules only when they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from leakboard.bench.contracts import LeakboardError, did_you_mean, path_of, teaches

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


@teaches(to="out", folder="out")
def run(
    suite: str | Path | Mapping[str, object] | Suite,
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    task: object = None,
    model: str | Path | Sequence[str | Path] | None = None,
    seeds: int | Sequence[int] | None = None,
    limit: int | None = None,
    evaluate: str | None = None,
    precision: str | None = None,
    transcripts: str | Path | None = None,
    workers: int | Engine = 1,
    progress: bool | Console = True,
    log_to: str | None = None,
) -> Results:
    """Runs the missing cells of a suite. It can be interrupted; the same call resumes.

    Args:
        suite: name of a built-in suite, path of a YAML file, or a dict with the keys of such a file:
            `{"name": "mine", "task": "reviews", "defenses": ["none", {"sap": {"eta": [75, 50]}}]}`.
            In a dict, defenses and attacks may also be classes and instances, including your own.
        out: folder of the records; by default `results/local/NAME`.
        data: folder of datasets, one folder each with train.tsv, dev.tsv, test.tsv.
        device: cpu, cuda, cuda:1, …, or auto.
        task, model, seeds, limit, evaluate: replace those of the suite; the first three are one value or a list.
            `limit` is the largest number of examples of each split, `evaluate` the split that is reported.
        precision: float32 or bf16, of all training for which the suite's rows do not set it.
        transcripts: folder for the transcript of each cell that is run.
        workers: number of processes on this machine, or an `Engine`, which also supports Ray and parts of a suite.
        progress: True shows progress on a terminal, False shows nothing; or a console of rich.
        log_to: 'mlflow' logs settings, curves and artefacts of each cell to MLFLOW_TRACKING_URI, or to an address
            after a colon, as in 'mlflow:sqlite:///runs.db'.

    Returns:
        The records of all cells, including earlier ones.

    Raises:
        LeakboardError: an invalid argument; all errors of the suite are reported together.
        MissingExtra: the extra of `log_to` is not installed.

    Examples:
        >>> import leakboard as lb
        >>> r = lb.run("smoke", out="runs/smoke", workers=2)  # doctest: +SKIP
        >>> r.best()  # doctest: +SKIP
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
    from leakboard.leaderboards.findings import power_notes
    from leakboard.leaderboards.results import LOCAL, Results, earlier_records

    engine = workers if isinstance(workers, Engine) else Engine(workers)
    if log_to is not None:
        check_tracker(log_to)
    loaded = load_suite(suite).override(
        task=task,
        model=model,
        seeds=seeds,
        limit=limit,
        evaluate=evaluate,
        precision=precision,
    )
    folder = path_of("out", out) or LOCAL / loaded.name
    transcript_folder, console = path_of("transcripts", transcripts), progress_console(progress)
    engine.prepare()
    with console.status("loading data and models") if console else nullcontext():
        plan = engine.part(make_plan(loaded, path_of("data", data), device_of(device)))
    if console:
        pilot = [*Store(folder).read_all(), *earlier_records(loaded.name)]
        power = power_notes([planned.cell for planned in plan.cells], pilot)
        for note in (*plan_notes(plan), *power):
            console.print(note, highlight=False, markup=False)
    with reporter_on(console, len(plan.cells)) as reporter:
        logged = reporter if log_to is None else TrackingReporter(reporter, log_to, loaded.name)
        records = engine.run(plan, Store(folder), logged, path_of("data", data), transcript_folder)
    return Results.of(records, loaded.name, loaded, [folder])


def tune(
    suite: str | Path | Mapping[str, object] | Suite,
    to: str | Path | None = None,
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int | Engine = 1,
    progress: bool | Console = True,
    on: Literal["auto", "public", "private"] = "auto",
    one_strength: bool = False,
    task: object = None,
    model: str | Path | Sequence[str | Path] | None = None,
    seeds: int | Sequence[int] | None = None,
    limit: int | None = None,
    evaluate: str | None = None,
    precision: str | None = None,
) -> Tuning:
    """Chooses the training settings of each row of a suite, on a held-out fifth of the training split.

    Args:
        suite, data, device, workers, progress: as for `run`.
        to: .yaml file to which the suite with the chosen settings is written.
        out: folder of the records of the trials; by default `results/local/NAME-trials`.
        on: texts on which trials are trained and compared. `auto`: public labelled texts of the task for rows with a
            formal guarantee, which does not cover trials on private examples, and private examples for the others.
        one_strength: tune the middle strength of each defense, and train its other strengths with the same settings.
        task, model, seeds, limit, evaluate, precision: as for `run`.

    Returns:
        `suite`, `choices`, and `records` of all trials.

    Raises:
        LeakboardError: an invalid argument, or the suite reports on the split that is used for the choice.

    Examples:
        >>> import leakboard as lb
        >>> tuning = lb.tune("matrix", "tuned.yaml", data="data")  # doctest: +SKIP
        >>> r = lb.run("tuned.yaml", data="data")  # doctest: +SKIP
    """
    from leakboard.bench.backbones import device_of
    from leakboard.bench.running import Engine, progress_console
    from leakboard.bench.suites import load_suite
    from leakboard.bench.tuning import check_file, write_tuned_suite
    from leakboard.bench.tuning import tune as choose_settings
    from leakboard.leaderboards.results import LOCAL

    engine = workers if isinstance(workers, Engine) else Engine(workers)
    loaded = load_suite(suite).override(
        task=task,
        model=model,
        seeds=seeds,
        limit=limit,
        evaluate=evaluate,
        precision=precision,
    )
    console = progress_console(progress)
    target, folder = path_of("to", to), path_of("out", out) or LOCAL / f"{loaded.name}-trials"
    if target is not None:
        check_file(loaded, target)
    where = path_of("data", data), device_of(device)
    tuning = choose_settings(loaded, folder, console, *where, engine, on, one_strength)
    if target is not None:
        write_tuned_suite(tuning, target, folder)
    return tuning


@teaches(goal="hide", budget="max_cost", results="records")
def choose(
    task: str = "sst2",
    hide: str = "inputs",
    max_cost: float = 3.0,
    records: Results | None = None,
    *,
    model: str | None = None,
) -> Choice:
    """The setting with the least leakage within a budget, with its evidence.

    A setting is chosen only if records show that it helps: an attack works without the defense, the setting clearly
    leaks less, and its cost is comparable. The answer covers only attacks that were run.

    Args:
        hide: inputs, labels, attributes, secrets, members or model, or a synonym; or several at once, such as
            "texts and labels".
        max_cost: largest mean loss in points of utility: 3 for an accuracy that falls from 0.85 to 0.82.
        records: records to choose from; by default the published ones.
        model: restricts the choice to settings of one model.

    Returns:
        The setting with its evidence; or no setting, the reason, and the nearest one. It is true if there is a setting.

    Raises:
        LeakboardError: an unknown goal, an invalid budget, or no records of the task.

    Examples:
        >>> import leakboard as lb
        >>> choice = lb.choose("sst2", "texts", max_cost=3, records=lb.published("sap-sst2"))
        >>> print(choice)
        Inputs of sst2, at most 3 points: ... leaks ...
    """
    from leakboard.leaderboards.results import published
    from leakboard.leaderboards.tables import check_budget, goals_asked
    from leakboard.leaderboards.tables import choose as chosen

    goals_asked(hide)
    check_budget(max_cost)
    if 0 < max_cost < 0.1:  # it was a share once
        raise LeakboardError(
            f"max_cost: expected points of utility, not a share; for a share of {max_cost:g} give {100 * max_cost:g}"
        )
    source = published() if records is None else _results(records)
    return chosen(source.table, task, hide, max_cost, model)


def compare(
    a: Result, b: Result, metric: Literal["leakage", "success", "utility", "cost"] = "leakage"
) -> Difference:
    """Difference of a metric between two rows of `Results.table`, paired over seeds.

    Args:
        metric: leakage and success are shares, utility and cost are in points.

    Returns:
        The mean difference with its 95 % interval, p and verdict (less, more or undecided); or the `reason` why the
        rows cannot be compared.

    Raises:
        LeakboardError: an argument is no row, or the metric is unknown.

    Examples:
        >>> import leakboard as lb
        >>> first, *_, last = lb.published("sap-sst2").table.select(defense="sap")
        >>> lb.compare(first, last, "utility").verdict
        'more'
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
    """Conclusions from records, as sentences with numbers, each with its rule and the keys of its records.

    Args:
        folders: folders of records, or names of suites that were run; by default the published records.
        rule: restricts the result to one rule, such as elsewhere.

    Raises:
        LeakboardError: no records, or no such rule.

    Examples:
        >>> import leakboard as lb
        >>> print(lb.findings("runs/mine")[0].sentence)
        Within 3 points, the most that is hidden of inputs on SST-2 is ... % (SAP-CTI, ...).
    """
    from leakboard.leaderboards.results import load, published

    source = load(*folders) if folders else published()
    return source.findings(rule)


def check(method: str | Path | type[Defense | Attack] | Defense | Attack) -> Report:
    """Tests a defense or an attack against the rules for methods, on a tiny model, in seconds.

    Args:
        method: a class, an instance, the name of a registered method, or `path/to/file.py`.

    Raises:
        LeakboardError: it is none of these.
        MissingExtra: the method needs an extra that is not installed.

    Examples:
        >>> import leakboard as lb
        >>> lb.check("my_defense.py").raise_if_failed()  # doctest: +SKIP
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
