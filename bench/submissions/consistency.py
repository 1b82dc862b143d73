"""Consistency of records: invalid names, and numbers that contradict each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from leakboard.bench.contracts import Leak, Record, name_of, visible
from leakboard.bench.methods import registry
from leakboard.bench.scoring import truth_of

METHOD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)?")
"""Valid names of tasks, hub models and folders."""
MOST_LEAKS = 500
"""Maximum number of leaks per record, since pairwise comparisons of more would take hours."""


def badly_named(record: Record) -> Iterator[str]:
    """Names that are not suited for tables, such as names with line breaks, or very long ones."""
    if len(record.leaks) > MOST_LEAKS:
        yield f"has {len(record.leaks)} results of attacks; at most {MOST_LEAKS} are accepted"
        return
    cell = record.cell
    methods = {cell.defense.name, *(leak.attack.name for leak in record.leaks)}
    yield from (f"'{name}' is no name of a method" for name in methods if not _is(METHOD, name))
    places = {cell.task, cell.model}
    yield from (
        f"'{name}' is no name of a task or model" for name in places if not _is(PLACE, name)
    )
    words = {cell.evaluate, *record.measures, record.provenance.device, record.provenance.platform}
    for leak in record.leaks:
        words |= {leak.view, leak.metric, leak.attribute or ""}
        words |= {point.recipient for point in leak.curve}
    for word in words:
        if len(word) > 100 or not _shows(word):
            yield f"'{word}' is no name"


def _is(pattern: re.Pattern[str], name: str) -> bool:
    return len(name) <= 100 and bool(pattern.fullmatch(name))


def _shows(word: str) -> bool:
    try:
        return bool(visible(word) or True)
    except ValueError:
        return False


class Labels:
    """Labels that records state for the same examples, which have to agree."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], tuple[str, str]] = {}

    def contradicts(self, record: Record) -> str | None:
        """A contradiction between the labels of a record and those of earlier records, or None."""
        labels = truth_of(record.predictions)
        if not labels:
            return None
        cell = record.cell
        same = (cell.data_hash, cell.limit, cell.evaluate, cell.seed)
        truth = hashlib.sha256(repr(sorted(labels.items())).encode()).hexdigest()
        first, known = self.known.setdefault(same, (record.key, truth))
        if truth == known:
            return None
        return f"{record.key} and {first} are about the same examples, but have different labels"


def contradictions(records: Sequence[Record]) -> Iterator[str]:
    """Contradictions in records that do not depend on raw guesses."""
    for record in records:
        yield from (f"{record.key}: {what}" for leak in record.leaks for what in _odd_chances(leak))
        if (cost := record.cost) is not None:
            parts = cost.train_seconds + cost.attack_seconds
            if parts > 1.05 * cost.total_seconds + 1:
                yield f"{record.key}: its parts took {parts:g} s, which is more than the whole"
        cell = record.cell
        known_here = registry.find(cell.defense.name, registry.defenses())
        if known_here and known_here.version == cell.defense.version:
            try:
                undefended = known_here(**cell.defense.params).undefended
            except Exception as error:  # whatever its validators raise
                yield f"{record.key}: invalid parameters of {cell.defense.name}: {error}"
                continue
            if undefended != record.undefended:
                yield f"{record.key}: `undefended` does not match its defense"


def _odd_chances(leak: Leak) -> Iterator[str]:
    if leak.success and not 0 <= leak.success.chance <= leak.ceiling:
        yield f"{name_of(leak)} has an invalid chance level of {leak.success.chance}"
