"""Tells the documentation's builder what a line about several arguments is about, as in `task, model: …`."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SEVERAL = re.compile(r"^( +)(\w+(?:, \w+)+): ", re.MULTILINE)


class OneEach(Extension):
    """Writes such a line as one for each argument; all but the last point to that."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = SEVERAL.sub(_each, obj.docstring.value)


def _each(found: re.Match[str]) -> str:
    indent, names = found[1], found[2].split(", ")
    lines = [f"{indent}{name}: see `{names[-1]}`." for name in names[:-1]]
    return "\n".join([*lines, f"{indent}{names[-1]}: "])
