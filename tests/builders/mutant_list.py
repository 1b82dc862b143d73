"""The list of lines that are broken on purpose, `tests/mutants.toml`, and whether it is up to date."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSE = ("attacks", "bench", "defenses", "leaderboards")
LIST = ROOT / "tests" / "mutants.toml"


@dataclass(frozen=True)
class Mutant:
    """A break of one place, and the tests that must fail by it.

    Attributes:
        id: what is wrong with the broken line, in words.
        file: from the root of the checkout.
        line: the text as it is, which occurs once in the file.
        broken: what it is replaced by.
        tests: pytest's names of them, from the folder `tests`.
    """

    id: str
    file: str
    line: str
    broken: str
    tests: tuple[str, ...]

    def text(self) -> str:
        """The broken file.

        Raises:
            ValueError: the line is not there, or not only once.
        """
        whole = (ROOT / self.file).read_text("utf-8")
        if (found := whole.count(self.line)) != 1:
            raise ValueError(f"{self.file} has the line {found} times: {self.line}")
        return whole.replace(self.line, self.broken)


def mutants() -> list[Mutant]:
    """All that are listed, file by file."""
    listed = tomllib.loads(LIST.read_text("utf-8"))
    return [
        Mutant(id, file, own["line"], own["broken"], tuple(own["tests"]))
        for file, breaks in listed.items()
        for id, own in breaks.items()
    ]


def outdated(mutant: Mutant) -> str:
    """Why a mutant says nothing any more; empty where it does."""
    try:
        broken = mutant.text()
        compile(broken, mutant.file, "exec")
    except (OSError, ValueError, SyntaxError) as error:
        return str(error)
    if mutant.line == mutant.broken or not mutant.tests:
        return "nothing is broken, or nobody looks"
    missing = [test for test in mutant.tests if not _exists(test)]
    return f"there is no test {', '.join(missing)}" if missing else ""


def _exists(test: str) -> bool:
    file, *names = test.split("[")[0].split("::")
    return (file, *names) in _tests_of(file)


@cache
def _tests_of(file: str) -> frozenset[tuple[str, ...]]:
    path = ROOT / "tests" / file
    if not path.is_file():
        return frozenset()
    return frozenset((file, *names) for names in _named(ast.parse(path.read_text("utf-8")).body))


def _named(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ...]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield (node.name,)
        elif isinstance(node, ast.ClassDef):
            yield from ((node.name, *inner) for inner in _named(node.body))
