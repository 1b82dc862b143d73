"""The rooms of the house: arrows one way, everything through the faces, and nothing too long."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from paths import HOUSE, ROOT

FACES = sorted(ROOT.glob("bench/*/__init__.pyi")) + sorted(ROOT.glob("leaderboards/*/__init__.pyi"))
ROOMS = sorted(path.parent for folder in HOUSE for path in ROOT.glob(f"{folder}/*/__init__.py"))
API = [*ROOT.glob("leakboard/*.py"), *ROOT.glob("leakboard/*.pyi")]
"""The public face and its stub."""
TEXTS = {".cfg", ".ini", ".ipynb", ".md", ".py", ".pyi", ".sh", ".toml", ".txt", ".yaml", ".yml"}
OLD = re.compile(
    r"\bfrom (?:{0})(?:\.\w+)* import\b|(?<!\w )\bimport (?:[\w.]+, )*(?:{0})\b|\bpython -m (?:{0})\.".format(
        "|".join(HOUSE)
    )
)
"""A folder of the house imported by its own name, which any project may have, too."""
LONGEST = 400
VAGUE = re.compile(r"(^|_)(utils?|common|helpers?|misc)(_|$)")
PRIVATE_WORDS = re.compile(
    "again|alone|apart|asked|beforehand|beside|decided|deciding|drawn|elsewhere|"
    "foreign|found|here|kept|keeping|laid|looks|own|parted|scene|shown|standing|"
    "standings|tape|together|told|undone|unfit|unmarked"
)
"""Words that say nothing to a reader who is new: no name at the top of a module begins with one."""
BARE_WORDS = re.compile(
    "by|given|held|in|listed|look|made|named|odd|of|on|one|opened|over|rest|"
    "said|seen|taken|unfolded|what|who|whole|with|written"
)
"""Words that are no name by themselves."""


def dotted(path: Path) -> str:
    """The module name of a file or a folder of the house."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "leakboard" else ("leakboard", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def code() -> Iterator[tuple[Path, str]]:
    """Every file that may import from a room, and its text; templates of methods are code as well."""
    for path in [*(p for name in HOUSE for p in ROOT.glob(f"{name}/**/*.py")), *API]:
        yield path, path.read_text("utf-8")
    for path in ROOT.glob("bench/conformance/templates/*.txt"):
        text = re.sub(r"\$\{?\w+\}?", "x", path.read_text("utf-8"))
        # Skeletons stand in `defenses/` and `attacks/`.
        yield ROOT / "defenses" / path.name, text


def lines_of(face: Path) -> dict[str, str]:
    """The exports of a face, each with the module that it comes from."""
    found = {}
    for node in ast.parse(face.read_text("utf-8")).body:
        assert isinstance(node, ast.ImportFrom), f"{face}: only `from .x import y as y` stands here"
        for name in node.names:
            assert name.name == name.asname, f"{face}: {name.name} is renamed or not exported"
            found[name.name] = node.module or ""
    return found


@cache
def faces() -> dict[str, dict[str, str]]:
    return {dotted(face.parent): lines_of(face) for face in FACES}


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))  # through the links of the package
    return path.is_dir() or path.with_suffix(".py").is_file()


@cache
def imports() -> list[tuple[Path, int, str, str | None]]:
    """File, line, module and name of each import of the house, at the top and inside functions."""
    found: list[tuple[Path, int, str, str | None]] = []
    for path, text in code():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found += [(path, node.lineno, alias.name, None) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == (path.suffix == ".pyi"), (
                    f"{path}:{node.lineno}: a relative import"
                )
                source = f"leakboard.{node.module}" if node.level else str(node.module)
                for alias in node.names:
                    name = f"{source}.{alias.name}"
                    # `from leakboard.bench import scoring` is an import of the room.
                    own = (name, None) if name in faces() else (source, alias.name)
                    found.append((path, node.lineno, *own))
    return [one for one in found if one[2].split(".")[0] == "leakboard"]


def room_of(module: str) -> str | None:
    """The room in which a module stands, if any."""
    room = ".".join(module.split(".")[:3])
    return room if ROOT.joinpath(*room.split(".")[1:], "__init__.py") in entrances() else None


@cache
def entrances() -> frozenset[Path]:
    return frozenset(room / "__init__.py" for room in ROOMS)


def places(found: list[tuple[Path, int, str]]) -> list[str]:
    return sorted(f"{path.relative_to(ROOT)}:{line}: {what}" for path, line, what in found)


def contracts() -> list[dict[str, object]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["importlinter"]["contracts"]


def test_imports_go_down_the_rooms_and_in_no_circle():
    linter = Path(sys.executable).with_name("lint-imports")
    words = [linter, "--no-cache", "--no-logo", "--config", ROOT / "pyproject.toml"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Contracts: {len(contracts())} kept, 0 broken." in done.stdout


def test_no_import_and_no_room_is_exempt_from_the_contracts():
    layers, circles = sorted(contracts(), key=lambda one: str(one["type"]), reverse=True)
    assert set(layers) == {"name", "type", "layers"}
    assert set(circles) == {"name", "type", "ancestors"}
    assert sorted(map(str, circles["ancestors"])) == [
        f"leakboard.{name}" for name in HOUSE
    ]  # at every depth
    named = {name.strip() for line in layers["layers"] for name in line.split("|")}
    assert named == {dotted(room) for room in ROOMS} | {
        "leakboard.api",
        "leakboard.canaries",
        "leakboard.attacks",
        "leakboard.defenses",
    }


@pytest.mark.parametrize("room", ROOMS, ids=dotted)
def test_a_room_says_in_three_sentences_what_it_is(room):
    told = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    assert len(re.findall(r"[.!?](?=\s|$)", told)) >= 3, told


@pytest.mark.parametrize("room", sorted(faces()))
def test_what_a_face_exports_is_there_and_used_elsewhere(room):
    module = import_module(room)
    used = {
        name
        for path, _, where, name in imports()
        if where == room and room_of(dotted(path)) != room and name is not None
    }
    for name, source in faces()[room].items():
        assert hasattr(module, name), f"{room} exports {name}, and {source} has none"
    assert sorted(faces()[room].keys() - used) == []


def test_nobody_reaches_past_a_face():
    past = []
    for path, line, module, name in imports():
        room = room_of(module)
        if not is_module(module):
            past.append((path, line, f"there is no {module}"))
        if room is None or room not in faces() or room_of(dotted(path)) == room:
            continue
        if module != room:
            past.append((path, line, f"{module} stands behind the face of {room}"))
        elif name is not None and name not in faces()[room]:
            past.append((path, line, f"{room} does not export {name}"))
    assert places(past) == []


def test_only_the_commands_use_the_public_face():
    faced = [
        (path, line, name or module)
        for path, line, module, name in imports()
        if module in ("leakboard", "leakboard.api") and not is_module(f"{module}.{name}")
        # Skeletons of methods outside the tree do as well.
        if path.suffix != ".txt"
        and path not in API
        and room_of(dotted(path)) != "leakboard.bench.cli"
    ]
    assert places(faced) == []


def test_no_folder_of_the_house_is_imported_by_its_own_name():
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    old = [
        (path, text.count("\n", 0, found.start()) + 1, found[0])
        for path in map(ROOT.joinpath, filter(None, names.split("\0")))
        if path.suffix in TEXTS and path.is_file() and path != Path(__file__)
        for text in [path.read_text("utf-8")]
        for found in OLD.finditer(text)
    ]
    assert places(old) == []


def test_no_room_uses_its_own_face():
    own = [
        (path, line, f"{name} comes from {module}.{faces()[module][name]}")
        for path, line, module, name in imports()
        if module in faces() and room_of(dotted(path)) == module and name in faces()[module]
        if not is_module(f"{module}.{name}")
    ]
    assert places(own) == []


def test_every_room_has_a_face_unless_it_is_entered_by_a_command():
    assert {dotted(room) for room in ROOMS} - faces().keys() == {"leakboard.bench.cli"}


def test_no_file_is_too_long_to_read():
    files = [path for name in HOUSE for path in ROOT.glob(f"{name}/**/*.py")]
    lengths = {dotted(path): len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


def test_no_file_lies_between_the_rooms():
    for name in ("bench", "leaderboards"):
        assert [path.name for path in ROOT.glob(f"{name}/*.py")] == ["__init__.py"]


def test_every_module_is_named_for_what_it_holds():
    names = defaultdict(list)
    for name in HOUSE:
        for path in ROOT.glob(f"{name}/**/*"):
            if path.suffix == ".py" or path.is_dir():
                names[path.stem].append(path)
    assert [path for name, found in names.items() if VAGUE.search(name) for path in found] == []


def words_of(name: str) -> list[str]:
    """The words of an identifier in lower case: `_toldApart` and `TOLD_APART` are told, apart."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def says_nothing(name: str) -> bool:
    words = words_of(name)
    return bool(words) and bool(
        PRIVATE_WORDS.fullmatch(words[0]) or (len(words) == 1 and BARE_WORDS.fullmatch(words[0]))
    )


def names_at_the_top(path: Path) -> Iterator[str]:
    """The module's own name, and those of its functions, classes and constants."""
    yield path.stem
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_names_at_the_top_of_a_module_are_plain_words():
    bad = defaultdict(set)
    for folder in HOUSE:
        for path in ROOT.glob(f"{folder}/**/*.py"):
            bad[path.parent.relative_to(ROOT).as_posix()] |= set(
                filter(says_nothing, names_at_the_top(path))
            )
    assert {folder: sorted(names) for folder, names in bad.items() if names} == {}
