"""A site while it is made: what is made of the same as before is carried over from the site before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import escape

from leakboard.leaderboards.site.inputs import Inputs
from leakboard.leaderboards.site.previous import MANIFEST, Previous, sha256

FOOT, END = "<span data-records>", "</span>"
"""Around what a page says at its foot of the records."""


class Draft:
    """The folder of a new site.

    Attributes:
        built: how many of its pages were not carried over.
    """

    def __init__(self, folder: Path, previous: Previous, records: str) -> None:
        """`records`: what every page says of them at its foot."""
        self.folder = folder
        self.built = 0
        self._previous, self._records = previous, records
        self._of: dict[str, str] = {}
        self._carried: dict[str, str] = {}

    def carries(self, of: str, paths: Sequence[str]) -> bool:
        """Takes over files that show this, all or none; without them they are to be written."""
        if not self._stand(of, paths):
            return False
        for path in paths:
            self._carry(path)
        return True

    def page(self, path: str, of: str, text: Callable[[], str]) -> None:
        """A page, made where none shows this; of one that does, its foot is written again."""
        stands = self._stand(of, [path])
        self.built += not stands
        before = (self._previous.folder / path).read_text("utf-8") if stands else text()
        body, _, foot = before.rpartition(FOOT)
        page = f"{body}{FOOT}{escape(self._records)}{END}{foot.partition(END)[2]}"
        if stands and page == before:
            self._carry(path)
        else:
            (self.folder / path).write_text(page, "utf-8")

    def _stand(self, of: str, paths: Sequence[str]) -> bool:
        """Whether files stand that show this; their places are made ready."""
        self._of |= dict.fromkeys(paths, of)
        for path in paths:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return all(self._previous.whole(path, of) for path in paths)

    def _carry(self, path: str) -> None:
        self._previous.hand_over(path, self.folder / path)
        self._carried[path] = self._previous.files[path].sha256

    def finish(self, inputs: Inputs) -> None:
        """Writes the manifest when everything else is there."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        files = {}
        for place in found:
            path = place.relative_to(self.folder).as_posix()
            files[path] = [self._of[path], self._carried.get(path) or sha256(place)]
        told = {"code": inputs.code, "inputs": inputs.told, "files": files}
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in told.items()]
        (self.folder / MANIFEST).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
