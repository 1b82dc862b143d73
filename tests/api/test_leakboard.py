"""The public module: quick to import, complete, and above everything but the commands."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys

from paths import HOUSE, ROOT

import leakboard as lb
from leakboard.bench.contracts.errors import LeakboardError

API = ast.parse((ROOT / "leakboard" / "api.py").read_text("utf-8"))


def test_importing_it_waits_for_no_heavy_library():
    heavy = "{'torch', 'numpy', 'pandas', 'pydantic', 'transformers', 'matplotlib'}"
    code = f"import sys, leakboard; print('heavy:', sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in out.stdout


def test_every_name_is_there_and_listed():
    assert dir(lb) == lb.__all__ == sorted(set(lb.__all__))
    for name in lb.__all__:
        assert getattr(lb, name) is not None
    functions = {node.name for node in API.body if isinstance(node, ast.FunctionDef)}
    assert {name for name in functions if not name.startswith("_")} <= set(lb.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(lb, "runn")


def test_errors_a_user_can_mend_are_one_class():
    assert lb.LeakboardError is LeakboardError
    assert issubclass(lb.MissingExtra, lb.LeakboardError)


def test_folders_of_the_same_names_where_it_is_run_are_not_touched(tmp_path):
    for name in HOUSE:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('of somebody else')")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    code = "import leakboard.bench.cli as cli, sys; sys.argv = ['leakboard', 'list']; cli.main()"
    words = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", code], check=False, **words)
    assert done.returncode == 0, done.stderr
    assert "sap-cti" in done.stdout


def test_a_checkout_without_links_says_which_is_missing_and_what_to_do(tmp_path):
    shutil.copytree(ROOT / "leakboard", tmp_path / "leakboard", symlinks=True)
    for name in HOUSE:
        (tmp_path / name).mkdir()
    (tmp_path / "leakboard" / "bench").unlink()
    (tmp_path / "leakboard" / "bench").write_text("../bench")  # as git does without links
    words = [sys.executable, "-c", "import leakboard"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = done.stderr.splitlines()[-1]
    assert told.startswith("ImportError: ")
    assert f"{tmp_path}/leakboard/bench must be a link to the folder bench" in told
    assert "git config core.symlinks true" in told


def test_its_docstring_shows_every_verb_in_a_few_lines():
    code = [line for line in lb.__doc__.splitlines() if line.startswith("    ")]
    assert len(code) <= 16
    for verb in ("run", "load", "published", "attack", "choose", "check", "Recorder", "Defense"):
        assert f"lb.{verb}" in lb.__doc__
