"""Output of `leakboard list` and `leakboard plan`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leakboard.bench.backbones import EMBEDDED, PACKAGED, is_on_this_machine
from leakboard.bench.contracts import Goal, LeakboardError, Record, did_you_mean
from leakboard.bench.methods import Attack, Method, registry
from leakboard.bench.records import Corrupt, Store
from leakboard.bench.running import Plan, PlannedCell, missing_pairings, plan_notes, task_notes
from leakboard.bench.suites import load_suite, suite_names
from leakboard.bench.tasks import listing
from leakboard.leaderboards.findings import power_notes
from leakboard.leaderboards.tables import GOAL_WORDS, goal_of, goals_of
from leakboard.leaderboards.terminal import FIRST

FAMILIES = (
    "BERT, RoBERTa, DeBERTa v2/v3, ModernBERT, MPNet, DistilBERT, ELECTRA, ALBERT, T5 (encoder), GPT-2, OPT, GPT-NeoX "
    "(Pythia), Llama, Mistral, Qwen 2/3, Gemma 3 (text), Phi-3, OLMo 2 or Falcon in safetensors"
)
ALL_ATTACKS = "all attacks"
"""On a defense that is skipped as a whole."""


def catalogue() -> dict[str, dict[str, str]]:
    """Names and descriptions by kind (defenses, attacks, …). The first line of a description is its summary."""
    defenses = {
        name: _about(defense, f"sends: {_words(defense.emits)}")
        for name, defense in registry.defenses().items()
    }
    attacks = {
        name: _about(
            attack,
            f"guesses: {_words(attack.threat.goals)}",
            f"reads: {_words(attack.threat.reads, ' or ') or 'nothing'}",
            f"knows: {_words(attack.threat.knows) or 'nothing else'}",
            *(
                ["costly: `attacks: all` leaves it out; to run it, name it in the suite"]
                if attack.costly
                else []
            ),
        )
        for name, attack in registry.attacks().items()
    }
    tasks = {
        task.name: "\n".join(
            part
            for part in (
                task.description,
                task.attributes and f"private attributes: {', '.join(task.attributes)}",
                f"source: {task.source}",
            )
            if part
        )
        for task in listing()
    }
    models = {
        **EMBEDDED,
        "a folder or hub id": FAMILIES,
        "a .gguf file": "Llama, Qwen 2/3 or Gemma 3 (text), dequantised once (extra `gguf`)",
    }
    suites = {name: load_suite(name).description for name in suite_names()}
    return {
        "defenses": defenses,
        "attacks": attacks,
        "tasks": tasks,
        "models": models,
        "suites": suites,
    }


def names() -> Iterator[RenderableType]:
    """The commands that describe each kind, and all names."""
    yield Text(
        "One line for each: leakboard list defenses. All attacks on labels: leakboard list attacks label. All details: "
        "leakboard list attacks eia-nn."
    )
    table = _table("kind", "names")
    for kind, texts in catalogue().items():
        table.add_row(f"{kind} ({len(texts)})", ", ".join(texts))
    yield table


def entries(kind: str, text: str | None = None) -> dict[str, str]:
    """Descriptions of the entries of a kind: of a goal, or those whose name or else description contains the text.

    Raises:
        LeakboardError: the kind is unknown, or no entry contains the text.
    """
    kinds = catalogue()
    if kind not in kinds:
        raise LeakboardError(f"list: no kind '{kind}'. {did_you_mean(kind, kinds)}")
    every, wanted = kinds[kind], (text or "").lower()
    if found := _of_goal(kind, wanted):
        return {name: every[name] for name in found}
    names = [name for name in every if wanted in name.lower()]
    names = names or [name for name, about in every.items() if wanted in about.lower()]
    if not names:
        raise LeakboardError(
            f"list {kind}: no entry contains '{text}'. {did_you_mean(wanted, every)}"
        )
    return {name: every[name] for name in names}


def by_goal(kind: str) -> dict[Goal, list[str]]:
    """Names of the defenses that are made for each goal, or of the attacks on it; empty for other kinds."""
    known: Mapping[str, type[Method]] = {}
    if kind in ("attacks", "defenses"):
        known = registry.attacks() if kind == "attacks" else registry.defenses()
    goals = {
        name: method.threat.goals if issubclass(method, Attack) else goals_of(name)
        for name, method in known.items()
    }
    return {goal: own for goal in GOAL_WORDS if (own := [n for n in goals if goal in goals[n]])}


def _of_goal(kind: str, word: str) -> list[str]:
    """Names for a goal by any of its names; none if the word names something else."""
    try:
        return by_goal(kind).get(goal_of(word), [])
    except LeakboardError:
        return []


def kind_parts(kind: str, text: str | None = None) -> Iterator[RenderableType]:
    """One line for each entry of a kind, or of a goal; with another text, all details of `entries`."""
    shown = entries(kind, text)
    if text is not None and not _of_goal(kind, text.lower()):
        yield _cards(shown)
        return
    if text is None:
        for goal, own in by_goal(kind).items():
            yield Text(f"{GOAL_WORDS[goal]}: {', '.join(own)}")
    yield Text(f"All details: leakboard list {kind} {next(iter(shown))}", "dim")
    table = _table("name", "")
    for name, about in shown.items():
        table.add_row(name, Text(about.split("\n")[0]))
    yield table


def models() -> list[dict[str, str | bool | int | None]]:
    """The models that have a name, and whether they are on this machine."""
    return [
        {
            "name": name,
            "on this machine": is_on_this_machine(name),
            "megabytes": PACKAGED[name].megabytes if name in PACKAGED else None,
            "about": about,
        }
        for name, about in EMBEDDED.items()
    ]


def model_table() -> Table:
    """`models` for a terminal."""
    table = _table("name", "state", "")
    for one in models():
        fetched = one["megabytes"] and f"{one['megabytes']} MB to fetch"
        missing = fetched or "extra not installed"
        state = "on this machine" if one["on this machine"] else str(missing)
        table.add_row(str(one["name"]), state, Text(str(one["about"])))
    table.add_row("a folder or hub id", "", Text(FAMILIES))
    return table


def plan(
    planned: Plan,
    store: Store,
    like: Sequence[Record] = (),
    everything: bool = False,
    why: bool = False,
) -> Iterator[RenderableType]:
    """`plan_content` for a terminal: the counts and notes, and the first cells.

    Args:
        everything: show all cells.
        why: show the reasons why pairs are skipped.
    """
    content = plan_content(planned, store, like)
    cells = content["cells"]
    counts = ", ".join(f"{n} {kind}" for kind, n in content["counts"].items())
    yield Text(f"{len(cells)} cells: {counts}; records in {store.folder}")
    if content["duration"]:
        yield Text(content["duration"])
    yield from map(Text, content["notes"])
    yield Text(f"attacks: {', '.join(content['attacks']) or 'none'}")
    table = _table(
        *("task", "model", "seed", "defense", "attacks", "state"),
        title=f"Plan of {planned.suite.name}",
    )
    for cell in cells if everything else cells[:FIRST]:
        row = {**cell, "model": f"{cell['model']}, cut {cell['cut']}"}
        names = ("task", "model", "seed", "defense", "attacks", "state")
        style = "" if cell["kind"] == "to run" else "dim"
        table.add_row(*(Text(str(row[name])) for name in names), style=style)
    yield table
    if len(cells) > FIRST and not everything:
        yield Text(f"{len(cells) - FIRST} more cells with --all", "dim")
    skipped = content["skipped"]
    told = [one for one in skipped if why or ALL_ATTACKS in one["attacks"]]
    for one in told:
        attacked, defenses = ", ".join(one["attacks"]), ", ".join(one["defenses"])
        yield Text(f"skipped: {attacked} on {defenses}: {one['reason']}", "dim")
    if len(told) < len(skipped):
        yield Text(
            "Some pairs of a defense and an attack are skipped; --why says which, and why", "dim"
        )


def plan_content(planned: Plan, store: Store, like: Sequence[Record] = ()) -> dict[str, Any]:
    """The cells with their state, the reasons why pairs are skipped, counts, and the expected duration.

    Nothing is written, and damaged records are not moved.

    Args:
        like: further records from which durations and power are estimated.

    Raises:
        LeakboardError: a record was written by a later version.
    """
    cells, missing = list[dict[str, Any]](), list[PlannedCell]()
    earlier = [*store.read_all(), *like]
    for cell in planned.cells:
        kind, state = _state(cell, store)
        if kind == "to run":
            missing.append(cell)
        cells.append(
            {
                "key": cell.cell.key,
                "task": cell.cell.task,
                "model": cell.cell.model,
                "cut": cell.cell.cut,
                "seed": cell.cell.seed,
                "defense": cell.named,
                "attacks": 0 if cell.skip_reason else sum(bool(p.goals) for p in cell.pairings),
                "kind": kind,
                "state": state,
            }
        )
    kinds = [cell["kind"] for cell in cells]
    return {
        "suite": planned.suite.name,
        "records": store.folder,
        "cells": cells,
        "attacks": [*map(str, planned.suite.attacks)],
        "notes": [
            *task_notes(planned),
            *plan_notes(planned),
            *power_notes([cell.cell for cell in planned.cells], earlier),
        ],
        "skipped": [
            {"attacks": attacks, "defenses": defenses, "reason": reason}
            for reason, (attacks, defenses) in _reasons(planned.cells).items()
        ],
        "counts": {kind: kinds.count(kind) for kind in ("done", "skipped", "to run")},
        "duration": duration(missing, earlier) if missing else "",
    }


def duration(cells: Sequence[PlannedCell], records: Iterable[Record]) -> str:
    """Expected duration of cells that run one after another, from records of the same method, task and model, or
    else of the same task and model."""
    by: dict[tuple[str, ...], list[float]] = {}
    for record in records:
        if record.cost is not None:
            cell = record.cell
            for place in ((cell.task, cell.model), (cell.task, cell.model, cell.defense.name)):
                by.setdefault(place, []).append(record.cost.total_seconds)
    seconds = []
    for planned in cells:
        place = planned.cell.task, planned.cell.model
        of = by.get((*place, planned.defense.name)) or by.get(place)
        if of:
            seconds.append(median(of))
    if not seconds:
        return "the duration is unknown, since no similar cell has been run; `run` estimates it after the first steps"
    estimate = f"about {format_duration(fmean(seconds) * len(cells))} in one process"
    return f"{estimate}, estimated from earlier runs, perhaps on another machine"


def format_duration(seconds: float) -> str:
    """'50 s', '12 min' or '3 h 20 min'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _state(cell: PlannedCell, store: Store) -> tuple[str, str]:
    """State of a cell (done, skipped or to run), and its description."""
    if cell.skip_reason:
        return "skipped", "skipped"
    try:
        record = store.read(cell.cell.key)
    except Corrupt as error:
        return "to run", f"damaged ({error}), to run again"
    if record is None:
        return "to run", "to run"
    left = missing_pairings(cell, record)
    if not left:
        return "done", "done" if record.status == "ok" else f"done: {record.status}"
    if record.status != "ok":
        return "to run", f"{record.status} before, to run again"
    return "to run", f"to complete: {', '.join(str(p.attack) for p in left)}"


def _reasons(cells: Iterable[PlannedCell]) -> dict[str, tuple[list[str], list[str]]]:
    """By reason: the attacks that are skipped for it, and the defenses on which they are."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}

    def note(reason: str, attack: str, defense: str) -> None:
        attacks, defenses = found.setdefault(reason, ({}, {}))
        attacks[attack] = defenses[defense] = None

    for cell in cells:
        if cell.skip_reason:
            note(cell.skip_reason, ALL_ATTACKS, cell.defense.name)
            continue
        for pairing in cell.pairings:
            for goal, reason in sorted(pairing.skip_reasons.items()):
                note(reason, f"{pairing.attack.name} ({goal})", cell.defense.name)
    return {
        reason: (list(attacks), list(defenses)) for reason, (attacks, defenses) in found.items()
    }


def _about(method: type[Method], *lines: str) -> str:
    """Description of a method: its summary, the given lines, its parameters with defaults, and its source."""
    paragraph = " ".join((method.__doc__ or "").strip().split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph)[0]
    parameters = [_parameter(name, field) for name, field in method.model_fields.items()]
    more = [f"parameters: {', '.join(parameters)}"] if parameters else []
    return "\n".join([sentence, *lines, *more, f"source: {method.source}"])


def _words(names: Iterable[str], between: str = ", ") -> str:
    return between.join(sorted(names))


def _parameter(name: str, field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return name
    return (
        f"{name} = {field.default:g}"
        if isinstance(field.default, float)
        else f"{name} = {field.default}"
    )


def _cards(texts: Mapping[str, str]) -> Table:
    """A table of names and descriptions; all lines of a description but the first are dimmed."""
    table = _table("name", "")
    for name, text in texts.items():
        first, *rest = text.split("\n")
        description = Text(first)
        description.append("".join(f"\n{line}" for line in rest), style="dim")
        table.add_row(name, description)
    return table


def _table(*columns: str, title: str = "") -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    return table
