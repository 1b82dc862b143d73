"""Names that a shell completes, without importing the methods, which takes seconds."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
"""Folder of the package; the source of a checkout has the same folders."""
KINDS = ("defenses", "attacks", "tasks", "models", "suites")
LOCAL = Path("results/local")
NAME = re.compile(r'^    name: ClassVar\[str\] = "([^"]+)"', re.MULTILINE)
"""The line of a method's class that names it."""


def complete_suite(incomplete: str) -> list[str]:
    """Built-in suites, and suite files in the working folder."""
    suites = [path.stem for path in (PACKAGE / "bench" / "suites").glob("*.yaml")]
    return _beginning(incomplete, [*suites, *map(str, Path().glob("*.yaml"))])


def complete_records(incomplete: str) -> list[str]:
    """Suites that were run."""
    runs = [path.name for path in LOCAL.glob("*") if path.is_dir()]
    return _beginning(incomplete, runs) or complete_suite(incomplete)


def complete_defense(incomplete: str) -> list[str]:
    """Defenses that come with the package."""
    return _beginning(incomplete, method_names("defenses"))


def complete_attack(incomplete: str) -> list[str]:
    """Attacks that come with the package."""
    return _beginning(incomplete, method_names("attacks"))


def complete_method(incomplete: str) -> list[str]:
    """Both."""
    return complete_defense(incomplete) + complete_attack(incomplete)


def complete_task(incomplete: str) -> list[str]:
    """Tasks that have a name."""
    from leakboard.bench.tasks import listing

    return _beginning(incomplete, [task.name for task in listing()])


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of `leakboard list`."""
    return _beginning(incomplete, KINDS)


def method_names(kind: str) -> list[str]:
    """Names of the methods in a folder of the package, as their files say."""
    texts = (path.read_text("utf-8") for path in (PACKAGE / kind).glob("[!_]*.py"))
    return [name for text in texts for name in NAME.findall(text)]


def _beginning(incomplete: str, names: list[str] | tuple[str, ...]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
