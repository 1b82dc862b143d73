"""The registry of defenses and attacks: from the project's two folders, from plug-ins, or from a single file.

A method needs no registration. A file in `defenses/` or `attacks/` is enough; a package outside the
tree names its class under the entry-point group `leakboard.defenses` or `leakboard.attacks`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from leakboard.bench.contracts import LeakboardError, did_you_mean
from leakboard.bench.methods.attack import Attack
from leakboard.bench.methods.combination import PLUS, combine
from leakboard.bench.methods.defense import Defense
from leakboard.bench.methods.method import Method

M = TypeVar("M", bound=Method)


@cache
def defenses() -> dict[str, type[Defense]]:
    """All defenses by name, in alphabetical order.

    Raises:
        LeakboardError: two defenses share a name, or a module or plug-in cannot be imported.
    """
    return _collect("defenses", Defense)


@cache
def attacks() -> dict[str, type[Attack]]:
    """All attacks by name, in alphabetical order.

    Raises:
        LeakboardError: two attacks share a name, or a module or plug-in cannot be imported.
    """
    return _collect("attacks", Attack)


def defense(name: str) -> type[Defense]:
    """The defense of that name; 'sap+frozen' is the combination of two.

    Raises:
        LeakboardError: there is none; the message gives the nearest name.
    """
    found = combination(name, defenses())
    return found or _pick("defense", name, defenses())


def attack(name: str) -> type[Attack]:
    """The attack of that name.

    Raises:
        LeakboardError: there is none; the message gives the nearest name.
    """
    return _pick("attack", name, attacks())


def load_method(where: str) -> type[Method]:
    """A defense or attack from a file: `path/to/file.py`, or `path/to/file.py:ClassName`.

    Raises:
        LeakboardError: no such file, it cannot be imported, or it is not clear which class is meant.
    """
    # A class name follows '.py'; the path may contain a colon as well.
    head, colon, wanted = where.rpartition(":")
    path, wanted = (Path(head), wanted) if colon and head.endswith(".py") else (Path(where), "")
    if path.suffix != ".py" or not path.is_file():
        raise LeakboardError(f"{path}: no such Python file")
    module = _import(str(path), partial(_run, path))
    found = {cls.__name__: cls for base in (Defense, Attack) for cls in _methods(module, base)}
    if wanted:
        if wanted not in found:
            raise LeakboardError(
                f"{path}: no method class '{wanted}'. {did_you_mean(wanted, found)}"
            )
        return found[wanted]
    if not found:
        raise LeakboardError(
            f"{path}: no method: no subclass of leakboard.Defense or leakboard.Attack "
            "that sets `name` and writes `fine_tune` or `guess`"
        )
    if len(found) > 1:
        raise LeakboardError(
            f"{path}: holds {', '.join(found)}. Say which one: {path}:{next(iter(found))}"
        )
    return next(iter(found.values()))


def _collect(package: str, base: type[Method]) -> dict[str, type[Any]]:
    found: dict[str, type[Method]] = {}
    for cls in (*_in_package(package, base), *_plug_ins(f"leakboard.{package}", base)):
        # One class may be found twice, through the tree and as a plug-in; that is no clash.
        if found.setdefault(cls.name, cls) is not cls:
            raise LeakboardError(
                f"two {package} are named '{cls.name}': {_location(found[cls.name])} and "
                f"{_location(cls)}. Rename one of them."
            )
    return dict(sorted(found.items()))


def _in_package(package: str, base: type[Method]) -> Iterator[type[Method]]:
    package = f"leakboard.{package}"
    folder = _import(package, partial(importlib.import_module, package))
    for info in pkgutil.iter_modules(folder.__path__, f"{package}."):
        spec = importlib.util.find_spec(info.name)
        file = spec.origin if spec and spec.origin else info.name
        yield from _methods(_import(file, partial(importlib.import_module, info.name)), base)


def _plug_ins(group: str, base: type[Method]) -> Iterator[type[Method]]:
    for point in entry_points(group=group):
        where = _entry(point)
        cls = _import(where, point.load)
        if not (inspect.isclass(cls) and issubclass(cls, base) and _usable(cls)):
            raise LeakboardError(
                f"{where}: must name a subclass of leakboard.{base.__name__} that sets `name` "
                f"and leaves nothing abstract, got {cls!r}"
            )
        yield cls


def _methods(module: ModuleType, base: type[Method]) -> list[type[Method]]:
    return [
        cls
        for cls in vars(module).values()
        if inspect.isclass(cls)
        and issubclass(cls, base)
        and cls.__module__ == module.__name__
        and _usable(cls)
    ]


def _usable(cls: type[Method]) -> bool:
    return hasattr(cls, "name") and not inspect.isabstract(cls)


def _import(where: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as e:
        line = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == where]
        place = f"{where}:{line[-1]}" if line else where
        raise LeakboardError(f"{place}: cannot be imported: {type(e).__name__}: {e}") from e


def _run(path: Path) -> ModuleType:
    name = f"leakboard_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # pydantic looks up annotations in the module by its name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _entry(point: EntryPoint) -> str:
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f"entry point '{point.name} = {point.value}' in the group {point.group}{package}"


def _location(cls: type[Method]) -> str:
    module = sys.modules.get(cls.__module__)
    return f"{cls.__qualname__} ({getattr(module, '__file__', cls.__module__)})"


def _pick(kind: str, name: str, known: Mapping[str, type[Any]]) -> type[Any]:
    if name not in known:
        raise LeakboardError(f"unknown {kind} '{name}'. {name_hint(name, known)}")
    return known[name]


def find(name: str, known: Mapping[str, type[M]]) -> type[M] | None:
    """The method with this name or former name, or the combination of that name; else None."""
    former = next((cls for cls in known.values() if name in cls.formerly), None)
    return known.get(name) or former or combination(name, known)


def combination(name: str, known: Mapping[str, type[Any]]) -> type[Any] | None:
    """The combination of known defenses whose names are joined by '+', in any order; else None."""
    words = name.split(PLUS)
    parts = [known.get(word) for word in words]
    whole = [cls for cls in parts if isinstance(cls, type) and issubclass(cls, Defense)]
    complete = len(words) > 1 and len(set(words)) == len(words) == len(whole)
    return combine(*whole) if complete else None


def name_hint(name: str, known: Mapping[str, type[Method]]) -> str:
    """Hint for an unknown name of a method: its new name, or the nearest names."""
    name = next((word for word in name.split(PLUS) if word not in known), name)
    method = find(name, known)
    return f"It is called '{method.name}' now" if method else did_you_mean(name, known)
