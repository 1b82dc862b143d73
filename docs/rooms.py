"""Adds to the documentation a page for each room of `bench/` and `leaderboards/`, read from its files."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ROOMS = sorted(
    path.parent for h in ("bench", "leaderboards") for path in ROOT.glob(f"{h}/*/__init__.py")
)


def on_config(config: Any) -> Any:
    """A place in the navigation for each room."""
    pages = [{_dotted(room): f"rooms/{_dotted(room)}.md"} for room in ROOMS]
    config.nav.append({"Rooms of the harness": ["rooms/index.md", *pages]})
    return config


def on_files(files: Files, config: Any) -> Files:
    for room in ROOMS:
        name = f"rooms/{_dotted(room)}.md"
        files.append(File.generated(config, name, content=_page(room)))
    return files


def _page(room: Path) -> str:
    """The sentences of a room, what it exports, and its files."""
    public = _public()
    lines = [f"# `{_dotted(room)}`", "", _docstring(room / "__init__.py"), ""]
    face = room / "__init__.pyi"
    if face.is_file():
        lines += ["## What others use", "", "| name | what it is |", "|---|---|"]
        for module, name in _exports(face):
            text = _first(
                _docstring(_file(room, module), name) if module else _docstring(_file(room, name))
            )
            shown = (
                f"[`{name}`][leakboard.{name}]" if (_dotted(room), name) in public else f"`{name}`"
            )
            lines.append(f"| {shown} | {text} |")
    lines += ["", "## Files", "", "| file | what it holds |", "|---|---|"]
    for path in sorted(room.rglob("*.py")):
        if path != room / "__init__.py":
            lines.append(f"| `{path.relative_to(room)}` | {_first(_docstring(path))} |")
    return "\n".join(lines) + "\n"


def _exports(face: Path) -> list[tuple[str, str]]:
    """Each export of a room and its module; '' where a whole module is exported."""
    imports = (n for n in ast.parse(face.read_text("utf-8")).body if isinstance(n, ast.ImportFrom))
    return [(node.module or "", alias.name) for node in imports for alias in node.names]


def _file(room: Path, module: str) -> Path:
    path = room.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _public() -> set[tuple[str, str]]:
    """Room and name of what `import leakboard` gives, which has a place in the pages on Python."""
    tree = ast.parse((ROOT / "leakboard" / "__init__.pyi").read_text("utf-8"))
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    return {
        (f"leakboard.{n.module}", a.name) for n in imports for a in n.names if a.asname == a.name
    }


def _docstring(path: Path, name: str | None = None) -> str:
    """The docstring of a file, or of what is called so in it; '' where there is none."""
    tree = ast.parse(path.read_text("utf-8"))
    if name is None:
        return ast.get_docstring(tree) or ""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _names(node):
            text = after.value if isinstance(after, ast.Expr) else None
            return str(text.value) if isinstance(text, ast.Constant) else ""
    raise LookupError(f"{path} holds no {name}, which its room exports")


def _names(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _first(text: str) -> str:
    """The first paragraph, as a cell of a table."""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _dotted(room: Path) -> str:
    return ".".join(("leakboard", *room.relative_to(ROOT).parts))
