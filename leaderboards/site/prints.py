"""For each part of a site a digest of all that it shows: parts of equal digests are equal to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from leakboard.bench.contracts import Record, digest
from leakboard.leaderboards.site.content import Content
from leakboard.leaderboards.site.documents import FOLDER, INDEX
from leakboard.leaderboards.site.inputs import Inputs
from leakboard.leaderboards.site.panels import Panel
from leakboard.leaderboards.site.pictures import Picture
from leakboard.leaderboards.tables import rows_of, setting_of


class Prints:
    """Digests of the parts of one site."""

    def __init__(self, content: Content, inputs: Inputs) -> None:
        self._shown, self._inputs = content, inputs

    @property
    def all(self) -> str:
        """Of a part that shows something of everything."""
        return self._inputs.all

    @property
    def code(self) -> str:
        """Of a part that shows no record."""
        return self._inputs.code

    @property
    def documents(self) -> str:
        """Where the documentation stands in the site; '' where it holds none."""
        return f"{FOLDER}/{INDEX}" if self._inputs.documents else ""

    def page(self, of: str) -> str:
        """Of a page that shows something of this digest between its head and its foot."""
        return digest([of, self.documents])

    def record(self, record: Record) -> str:
        """Of a record: its files, and what others say of it."""
        return self._records[record.key]

    def method(self, kind: str, name: str, verdict: object) -> str:
        """Of the page of a method; `verdict`: where it stands among others."""
        told = self._told(kind, name, self._shown.using[kind].get(name, []))
        return digest([self.code, kind, name, *told, repr(verdict)])

    def task(self, task: str) -> str:
        """Of the page of a task."""
        records = [one for one in self._shown.records if one.cell.task == task]
        return digest([self.code, "task", task, *self._told("task", task, records)])

    def _told(
        self, column: str, name: str, records: Sequence[Record]
    ) -> tuple[list[str], list[str]]:
        """Of the settings of that name, and of records."""
        settings = self._shown.settings
        own = settings.index[settings[column] == name]
        return [self._settings[row] for row in own], [self.record(one) for one in records]

    def panel(self, panel: Panel) -> str:
        """Of a figure of utility against privacy."""
        rows = [self._settings[row] for row in panel.rows.index]
        return digest([self.code, panel.task, panel.what, panel.about, rows])

    def picture(self, picture: Picture) -> str:
        """Of another figure."""
        return self._of_records([picture.title, picture.words], picture.records)

    def _of_records(self, words: Sequence[str], records: Sequence[Record]) -> str:
        return digest([self.code, words, [self.record(one) for one in records]])

    @cached_property
    def _records(self) -> dict[str, str]:
        shown, found = self._shown, {}
        for record in shown.records:
            key, collection = record.key, shown.collection
            places = range(-1, len(record.leaks))
            told = [
                [self._inputs.files[path] for path in collection.files[key]],
                collection.folders(key),
                [shown.flags.get((key, place), ()) for place in places],
                [shown.strengths.get((key, place)) for place in places],
                shown.words[key],
                [
                    one.model_dump_json(exclude={"records"})
                    for one in collection.submitted.get(key, ())
                ],
            ]
            found[key] = digest([self.code, key, told])
        return found

    @cached_property
    def _settings(self) -> dict[int, str]:
        """Of each row of the settings, and the record to which it leads."""
        rows, keys = self._shown.settings, self._shown.keys
        return {
            index: digest([self.code, keys[setting_of(row)], repr(row)])
            for index, row in zip(rows.index, rows_of(rows), strict=True)
        }
