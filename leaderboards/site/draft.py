"""A site while it is made: what is made of the same as before is carried over from the site before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from leaderboards.site.inputs import Inputs
from leaderboards.site.previous import MANIFEST, Previous, sha256


class Draft:
    """The folder of a new site.

    Attributes:
        built: how many of its pages were not carried over.
    """

    def __init__(self, folder: Path, previous: Previous) -> None:
        self.folder = folder
        self.built = 0
        self._previous = previous
        self._of: dict[str, str] = {}
        self._carried: dict[str, str] = {}

    def carries(self, of: str, paths: Sequence[str]) -> bool:
        """Takes over files that show this, all or none; without them they are to be written."""
        self._of |= dict.fromkeys(paths, of)
        for path in paths:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not all(self._previous.whole(path, of) for path in paths):
            return False
        for path in paths:
            self._previous.hand_over(path, self.folder / path)
            self._carried[path] = self._previous.files[path].sha256
        return True

    def page(self, path: str, of: str, text: Callable[[], str]) -> None:
        """A page, written where it is not carried over."""
        if not self.carries(of, [path]):
            self.built += 1
            (self.folder / path).write_text(text(), "utf-8")

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
