"""What `leakboard list` and `leakboard plan` show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bench.backbones import EMBEDDED
from bench.methods import Method, registry
from bench.records import Corrupt, Store
from bench.running import Plan, Planned, lacking
from bench.suites import load_suite, suite_names
from bench.tasks import listing


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
            *(["costly: `attacks: all` leaves it out; name it"] if attack.costly else []),
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
        "a folder or hub id": "BERT, ModernBERT, RoBERTa, DeBERTa v2/v3, T5 (encoder), GPT-2, Llama, Mistral, Qwen 2/3 or Gemma 3 (text) in safetensors",
        "a file .gguf": "Llama, Qwen 2/3 or Gemma 3 (text), dequantised once (extra `gemma`)",
    }
    suites = {name: load_suite(name).description for name in suite_names()}
    return [
        _cards("Defenses", defenses),
        _cards("Attacks", attacks),
        _cards("Tasks", tasks),
        _cards("Models", models),
        _cards("Suites", suites),
    ]


def plan(planned: Plan, store: Store) -> Iterator[RenderableType]:
    """The cells with their state, each reason why something does not fit, and a count.

    Nothing is written: a damaged record stays where it is.

    Raises:
        LeakboardError: a record was written by a later version.
    """
    table = _table(
        f"Plan of {planned.suite.name}", "task", "model", "seed", "defense", "attacks", "state"
    )
    kinds = []
    for cell in planned.cells:
        kind, state = _state(cell, store)
        kinds.append(kind)
        where = (cell.cell.task, f"{cell.cell.model}, cut {cell.cell.cut}", str(cell.cell.seed))
        attacks = 0 if cell.refused else sum(bool(p.goals) for p in cell.pairings)
        row = (*where, cell.named, str(attacks), state)
        table.add_row(*map(Text, row), style="" if kind == "to run" else "dim")
    yield table
    yield Text(f"attacks: {', '.join(map(str, planned.suite.attacks)) or 'none'}")
    yield from map(Text, planned.additions())
    for reason, (attacked, defenses) in _reasons(planned.cells).items():
        yield Text(f"skipped: {', '.join(attacked)} on {', '.join(defenses)}: {reason}", "dim")
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("done", "skipped", "to run"))
    yield Text(f"{len(kinds)} cells: {counts}; records in {store.folder}")


def _state(cell: Planned, store: Store) -> tuple[str, str]:
    """Whether a cell is done, skipped or to run, and in words how it stands."""
    if cell.refused:
        return "skipped", "skipped"
    try:
        record = store.read(cell.cell.key)
    except Corrupt as error:
        return "to run", f"damaged ({error}), to run again"
    if record is None:
        return "to run", "to run"
    left = lacking(cell, record)
    if not left:
        return "done", "done" if record.status == "ok" else f"done: {record.status}"
    if record.status != "ok":
        return "to run", f"{record.status} before, to run again"
    return "to run", f"to complete: {', '.join(str(p.attack) for p in left)}"


def _reasons(cells: Iterable[Planned]) -> dict[str, tuple[list[str], list[str]]]:
    """Reason → the attacks that it keeps from running and the defenses on which it does."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}

    def note(reason: str, attack: str, defense: str) -> None:
        attacks, defenses = found.setdefault(reason, ({}, {}))
        attacks[attack] = defenses[defense] = None

    for cell in cells:
        if cell.refused:
            note(cell.refused, "all attacks", cell.defense.name)
            continue
        for pairing in cell.pairings:
            for goal, reason in sorted(pairing.refused.items()):
                note(reason, f"{pairing.attack.name} ({goal})", cell.defense.name)
    return {
        reason: (list(attacks), list(defenses)) for reason, (attacks, defenses) in found.items()
    }


def _about(method: type[Method], *lines: str) -> str:
    """What a method does, the lines given, its parameters with their defaults, and its source."""
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
