"""Generator of working skeletons for new methods."""

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
"""Where the nouns of the skeletons live."""
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
        to: folder of both files, made if need be; without it they go to the working folder. Where that is
            the checkout of this project they go to `defenses/` or `attacks/`, and to `tests/`.

    Raises:
        LeakboardError: a bad name or one that is taken, a file that exists, or a folder that cannot be
            written. Nothing is written then, or the first file only where the disk fails at the second.
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
    for path, content in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(content)
        except OSError as error:
            raise LeakboardError(f"{path} cannot be written: {error.strerror or error}") from error
    return list(contents)


def _from_the_rooms(text: str) -> str:
    """With imports from the rooms for those from `leakboard`, which stands above the methods in here."""
    imports = (node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom))
    (face,) = (node for node in imports if node.module == "leakboard")
    names, lines = [alias.name for alias in face.names], text.splitlines()
    rooms = {room: set(importlib.import_module(room).__all__) for room in ROOMS}
    lines[face.lineno - 1 : face.end_lineno] = [
        f"from {room} import {', '.join(mine)}"
        for room, known in rooms.items()
        if (mine := [name for name in names if name in known])
    ]
    return "\n".join(lines) + "\n"


def _checked(name: str) -> str:
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise LeakboardError(
            f"'{name}' is no valid name: use lower-case words of letters and digits that begin "
            "with a letter, joined by '-', as in my-noise; words of the Python language are taken"
        )
    for kind, known in (("defense", registry.defenses()), ("attack", registry.attacks())):
        if name in known:
            raise LeakboardError(f"there is {kind} '{name}' already; choose another name")
    return name


def _in_the_checkout() -> bool:
    """Whether the working folder is the checkout of this module, the only one that registers new files by itself."""
    is_checkout = (ROOT / "pyproject.toml").is_file() and (ROOT / "defenses").is_dir()
    return is_checkout and Path.cwd().resolve() == ROOT


def _class_name(kind: str, stem: str) -> str:
    """MyNoise for my_noise; with the kind behind it where the skeleton uses that word itself."""
    name = "".join(part.capitalize() for part in stem.split("_"))
    text = Template(_template(kind)).substitute(cls="Skeleton", name="", entry="")
    taken = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return name + kind.capitalize() if name in taken or keyword.iskeyword(name) else name


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
