"""The public module: quick to import, complete, and above everything but the commands."""

from __future__ import annotations

import ast
import subprocess
import sys

from paths import ROOT

import leakboard as lb
from leakboard.bench.contracts.errors import LeakboardError

SOURCE = ast.parse((ROOT / "leakboard.py").read_text("utf-8"))


def imported(body):
    """The names that some statements import, by the module they come from."""
    found = {}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module, set()).update(name.asname for name in node.names)
    return found


def test_importing_it_waits_for_no_heavy_library():
    heavy = "{'torch', 'numpy', 'pandas', 'pydantic', 'transformers', 'matplotlib'}"
    code = f"import sys, leakboard; print('heavy:', sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in out.stdout


def test_what_type_checkers_see_is_what_there_is_at_run_time():
    (hidden,) = (
        node
        for node in SOURCE.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    typed = {room: names - {None} for room, names in imported(hidden.body).items()}
    lazy = {room: set(names.split()) for room, names in lb._ROOMS.items()}
    assert {room: names for room, names in typed.items() if names} == lazy


def test_every_name_is_there_and_listed():
    assert dir(lb) == lb.__all__ == sorted(set(lb.__all__))
    for name in lb.__all__:
        assert getattr(lb, name) is not None
    functions = {node.name for node in SOURCE.body if isinstance(node, ast.FunctionDef)}
    assert {name for name in functions if not name.startswith("_")} <= set(lb.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(lb, "runn")


def test_errors_a_user_can_mend_are_one_class():
    assert lb.LeakboardError is LeakboardError
    assert issubclass(lb.MissingExtra, lb.LeakboardError)


def test_it_stands_below_the_commands():
    # A single module cannot be a root of the import contracts, which look at who imports it.
    modules = {node.module for node in ast.walk(SOURCE) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in modules if module and module.startswith("leakboard.bench.cli")]


def test_its_docstring_shows_every_verb_in_a_few_lines():
    code = [line for line in lb.__doc__.splitlines() if line.startswith("    ")]
    assert len(code) <= 15
    for verb in ("run", "load", "published", "attack", "choose", "check", "Recorder", "Defense"):
        assert f"lb.{verb}" in lb.__doc__
