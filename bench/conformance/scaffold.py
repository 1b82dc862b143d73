"""Generator of skeletons for new methods."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import keyword
from pathlib import Path
from string import Template
from typing import Literal

from leakboard.bench.conformance.rules import NAME
from leakboard.bench.contracts import LeakboardError
from leakboard.bench.methods import registry

ROOMS = (
    "leakboard.bench.backbones",
    "leakboard.bench.contracts",
    "leakboard.bench.exchange",
    "leakboard.bench.methods",
)
"""Packages from which skeletons import."""
TEMPLATES = Path(__file__).with_name("templates")
ROOT = Path(__file__).resolve().parents[2]
"""The checkout, if this module belongs to one; else the folder of installed packages."""
ENTRY = """

Outside the project's tree a package registers it by these lines of its pyproject.toml:

    [project.entry-points."leakboard.${kind}s"]
    $name = "my_package.$stem:$cls"
"""


def write_skeleton(
    kind: Literal["defense", "attack"], name: str, to: Path | None = None
) -> list[Path]:
    """Writes a skeleton and its test, and returns both paths, that of the method last.

    Args:
        to: folder of both files, created if missing. By default the working folder, or `defenses/` or `attacks/` and
            `tests/` if that is a checkout of this project.

    Raises:
        LeakboardError: an invalid or used name, an existing file, or a folder that is not writable.
    """
    stem = _checked(name).replace("-", "_")
    if to is None and not _in_the_checkout():
        to = Path()
    if to is None:
        folder, module = f"{kind}s", f"{kind}s.{stem}"
        method = ROOT / folder / f"{stem}.py"
        test = ROOT / "tests" / folder / f"test_{stem}.py"
    else:
        method, test = to / f"{stem}.py", to / f"test_{stem}.py"
        module = stem
    for path in (method, test):
        if path.exists():
            raise LeakboardError(f"{path} exists and is not overwritten; choose another name")
    if to is not None and importlib.util.find_spec(stem):
        raise LeakboardError(f"{stem}.py would hide the module '{stem}'; choose another name")
    words = {"kind": kind, "name": name, "stem": stem, "module": module}
    words["cls"] = _class_name(kind, stem)
    words["entry"] = Template(ENTRY).substitute(words) if to is not None else ""
    skeleton = Template(_template(kind)).substitute(words)
    contents = {
        test: Template(_template(f"test_{kind}")).substitute(words),
        method: _from_the_rooms(skeleton) if to is None else skeleton,
    }
    made: list[Path] = []
    for path, content in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(content)
        except OSError as error:
            for half_written in made:
                half_written.unlink(missing_ok=True)
            raise LeakboardError(f"{path} cannot be written: {error.strerror or error}") from error
    return list(contents)


def _from_the_rooms(text: str) -> str:
    """The text with imports from the packages instead of `leakboard`, which methods of this project may not import."""
    imports = (node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom))
    (face,) = (node for node in imports if node.module == "leakboard")
    names, lines = [alias.name for alias in face.names], text.splitlines()
    rooms = {room: set(importlib.import_module(room).__all__) for room in ROOMS}
    lines[face.lineno - 1 : face.end_lineno] = [
        f"from {room} import {', '.join(exported)}"
        for room, known in rooms.items()
        if (exported := [name for name in names if name in known])
    ]
    return "\n".join(lines) + "\n"


def _checked(name: str) -> str:
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise LeakboardError(
            f"'{name}' is not a valid name: use lower-case words of letters and digits that begin "
            "with a letter, joined by '-', as in my-noise, but no keywords of Python"
        )
    for kind, known in (("defense", registry.defenses()), ("attack", registry.attacks())):
        if name in known:
            raise LeakboardError(f"{kind} '{name}' already exists; choose another name")
    return name


def _in_the_checkout() -> bool:
    """Whether the working folder is the checkout of this module, in which new files are registered."""
    is_checkout = (ROOT / "pyproject.toml").is_file() and (ROOT / "defenses").is_dir()
    return is_checkout and Path.cwd().resolve() == ROOT


def _class_name(kind: str, stem: str) -> str:
    """MyNoise for my_noise, with the kind as a suffix if the skeleton uses that name."""
    name = "".join(part.capitalize() for part in stem.split("_"))
    text = Template(_template(kind)).substitute(cls="Skeleton", name="", entry="")
    taken = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return name + kind.capitalize() if name in taken or keyword.iskeyword(name) else name


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
