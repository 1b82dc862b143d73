"""What `leakboard list` and `leakboard plan` show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bench import registry
from bench.backbones import EMBEDDED
from bench.plan import Pairing, Plan, Planned
from bench.runner import lacking
from bench.store import Corrupt, Store
from bench.suite import load_suite, suite_names
from bench.tasks.catalogue import listing
from bench.types import Method


def tables() -> list[Table]:
    """One table each of defenses, attacks, tasks, models and suites."""
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
    models = {**EMBEDDED, "a folder or hub id": "any BERT or RoBERTa encoder in safetensors"}
    suites = {name: load_suite(name).description for name in suite_names()}
    return [
        _cards("Defenses", defenses),
        _cards("Attacks", attacks),
        _cards("Tasks", tasks),
        _cards("Models", models),
        _cards("Suites", suites),
    ]


def plan(planned: Plan, store: Store) -> Iterator[RenderableType]:
    """The cells with their state, then each reason why a pair does not fit, then a count."""
    table = _table(
        f"Plan of {planned.suite.name}", "task", "model", "seed", "defense", "attacks", "state"
    )
    states = []
    for cell in planned.cells:
        states.append(_state(cell, store))
        where = (cell.cell.task, f"{cell.cell.model}, cut {cell.cell.cut}", str(cell.cell.seed))
        attacks = sum(bool(p.goals) for p in cell.pairings)
        row = (*where, str(cell.defense), str(attacks), states[-1])
        table.add_row(*map(Text, row), style="dim" if states[-1] == "done" else "")
    yield table
    for reason, names in _reasons(planned.cells).items():
        yield Text(f"skipped: {', '.join(names)}: {reason}", style="dim")
    done = states.count("done")
    yield Text(f"{len(states)} cells, {done} done, {len(states) - done} to run in {store.folder}")


def _state(cell: Planned, store: Store) -> str:
    if cell.refused:
        return f"skipped: {cell.refused}"
    try:
        record = store.read(cell.cell.key)
    except Corrupt as error:
        return f"damaged ({error}), to run again"
    if record is None:
        return "to run"
    left = lacking(cell, record)
    if not left:
        return "done" if record.status == "ok" else f"done: {record.status}"
    if record.status != "ok":
        return f"{record.status} before, to run again"
    return f"to complete: {', '.join(p.attack.name for p in left)}"


def _reasons(cells: Iterable[Planned]) -> dict[str, list[str]]:
    """Reason → the attacks it keeps from running, each once."""
    found: dict[str, dict[str, None]] = {}
    pairings: Iterable[Pairing] = (p for cell in cells for p in cell.pairings)
    for pairing in pairings:
        for goal, reason in pairing.refused.items():
            found.setdefault(reason, {})[f"{pairing.attack.name} ({goal})"] = None
    return {reason: sorted(names) for reason, names in found.items()}


def _about(method: type[Method], *lines: str) -> str:
    """What a method does, the lines given, its parameters with their defaults, and its source."""
    sentence = " ".join((method.__doc__ or "").strip().split("\n\n")[0].split())
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


def _cards(title: str, texts: Mapping[str, str]) -> Table:
    """A name and what there is to say about it; the first line stands out."""
    table = _table(title, "name", "")
    for name, text in texts.items():
        first, *rest = text.split("\n")
        told = Text(first)
        told.append("".join(f"\n{line}" for line in rest), style="dim")
        table.add_row(name, told)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    return table
