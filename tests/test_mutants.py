"""The list of broken lines is alive: each is still there, and so are the tests that notice."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from mutant_list import ROOT, mutants, outdated

METHODS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("defenses", "attacks")
    for path in ROOT.glob(f"{folder}/[!_]*.py")
)
LEAST = 3
"""Mutants of each method."""


def test_every_line_is_there_once_and_its_tests_are_there():
    told = {f"{mutant.file}: {mutant.id}": outdated(mutant) for mutant in mutants()}
    assert {name: why for name, why in told.items() if why} == {}


def test_every_method_has_lines_that_are_broken_on_purpose():
    counts = Counter(mutant.file for mutant in mutants())
    assert {file: counts[file] for file in METHODS if counts[file] < LEAST} == {}


@pytest.mark.parametrize("room", ["rules", "defense_rules", "attack_rules"])
def test_every_rule_of_the_harness_has_a_line_that_is_broken_on_purpose(room):
    path = ROOT / "bench" / "conformance" / f"{room}.py"
    text = path.read_text("utf-8")
    listed = [m for m in mutants() if ROOT / m.file == path]
    broken = {text[: text.index(m.line)].count("\n") + 1 for m in listed if m.line in text}
    rules = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(d, ast.Call) and ast.unparse(d.func) == "rule" for d in node.decorator_list
        )
    ]
    assert rules
    without = [
        node.name
        for node in rules
        if not any(node.lineno <= line <= (node.end_lineno or 0) for line in broken)
    ]
    assert without == []
