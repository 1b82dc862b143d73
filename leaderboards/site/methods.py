"""The pages of methods: the verdict first, then settings, what the method is, flags and certificates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from leakboard.bench.contracts import Record
from leakboard.bench.methods import registry
from leakboard.bench.scoring import FLAGS, NEEDED, Strengths
from leakboard.leaderboards.site.cells import Table, aim
from leakboard.leaderboards.site.content import KINDS, Content
from leakboard.leaderboards.site.front import Answer, about, answer
from leakboard.leaderboards.site.links import Links
from leakboard.leaderboards.site.method_answers import Standing, dots_of, reach, standings_of
from leakboard.leaderboards.site.method_facts import facts
from leakboard.leaderboards.site.record_tables import records_table, settings_table
from leakboard.leaderboards.site.scatter import Dot
from leakboard.leaderboards.tables import Matrix

Verdict = tuple[list[Standing], list[Dot]]
"""Where a defense stands, and the chart of its settings."""


class Methods:
    """What stands on the pages of methods, for pages of these links."""

    def __init__(self, shown: Content, links: Links) -> None:
        self._shown, self._links = shown, links

    @cached_property
    def known(self) -> dict[str, dict[str, type[Any]]]:
        """By kind and name the classes that are registered."""
        return {"defense": dict(registry.defenses()), "attack": dict(registry.attacks())}

    @property
    def kinds(self) -> dict[str, dict[str, list[tuple[str, str, int, str]]]]:
        """By kind and by what they hide or look for: name, what it is, number of records, and kind."""
        kinds: dict[str, dict[str, list[tuple[str, str, int, str]]]] = {}
        for kind, names in self._shown.methods.items():
            groups: dict[str, list[tuple[str, str, int, str]]] = {}
            for name in names:
                cls = self.known[kind].get(name)
                words = (
                    facts(cls)["paragraphs"][0]
                    if cls
                    else "No method of this name is part of this version."
                )
                cells = len(self._shown.using[kind].get(name, []))
                groups.setdefault(about(kind, name, cls), []).append((name, words, cells, kind))
            kinds[f"{kind}s"] = dict(sorted(groups.items()))
        return kinds

    @cached_property
    def _answers(self) -> list[tuple[Matrix, Answer]]:
        return [(matrix, answer(matrix, self._links)) for matrix in self._shown.matrices]

    @cached_property
    def _by_attack(self) -> dict[str, pd.DataFrame]:
        """The rows of each attack; to look for them one by one would take longer."""
        by = self._shown.frame.groupby("attack", sort=False)
        return {str(name): own for name, own in by if name}

    def _reach(self, attack: str) -> Table | None:
        own = self._by_attack.get(attack)
        return None if own is None else reach(own, self._links)

    @cached_property
    def _verdicts(self) -> dict[str, Verdict]:
        return {}

    def verdict(self, kind: str, name: str) -> Verdict:
        """Of a defense; of an attack its records alone decide what is shown, and there is none."""
        if kind != KINDS[0]:
            return [], []
        if name not in self._verdicts:
            self._verdicts[name] = standings_of(name, self._answers), self._dots(name)
        return self._verdicts[name]

    def _dots(self, defense: str) -> list[Dot]:
        """In the first comparison where what it hides was looked for."""
        for matrix, one in self._answers:
            if any(line.defense == defense for line in matrix.lines):
                found = list(dots_of(defense, matrix, one, self._links))
                if any(not dot.pale for dot in found):
                    return found
        return []

    def page(self, kind: str, name: str) -> dict[str, Any]:
        """One defense or attack."""
        shown, links = self._shown, self._links
        cls = self.known[kind].get(name)
        rows = shown.settings[shown.settings[kind] == name]
        records = shown.using[kind].get(name, [])
        raised = [
            flag
            for record in records
            for index, leak in enumerate(record.leaks)
            if name == (leak.attack.name if kind == "attack" else record.cell.defense.name)
            for flag in shown.flags.get((record.key, index), ())
        ]
        if kind == "defense":
            raised += [flag for r in records for flag in shown.flags.get((r.key, -1), ())]
        stands, dots = self.verdict(kind, name)
        return {
            "kind": kind,
            "name": name,
            "about": facts(cls) if cls else None,
            "stands": stands,
            "dots": dots,
            "reach": self._reach(name) if kind == "attack" else None,
            "listed": settings_table(rows, shown.keys, links) if len(rows) else None,
            "records": records_table(records, shown.words, links) if records else None,
            "flags": {flag: (raised.count(flag), FLAGS[flag]) for flag in FLAGS if flag in raised},
            "certificates": certificates(records, shown.strengths, kind, name),
        }


def certificates(
    records: Sequence[Record], sure: Strengths, kind: str, name: str
) -> list[tuple[str, str, str]]:
    """(what is certified, where, key) of each undefended cell on which an attack is shown to work."""
    found: dict[tuple[str, str], str] = {}
    for record in records:
        for index, leak in enumerate(record.leaks if record.undefended else ()):
            who = leak.attack.name if kind == "attack" else record.cell.defense.name
            if sure.get((record.key, index), 0.0) >= NEEDED and who == name:
                guessed = aim(leak.goal, leak.attribute)
                what = f"{leak.attack.name} ({guessed}, reads {leak.channel or 'nothing'})"
                cell = record.cell
                where = f"{cell.task}, {cell.model}, cut {cell.cut}, on {cell.defense.name}"
                found.setdefault((what, where), record.key)
    return [(what, where, key) for (what, where), key in found.items()]
