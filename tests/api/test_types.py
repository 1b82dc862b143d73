"""The public face for a type checker: what a script outside the project sees of it."""

from __future__ import annotations

import getpass
import inspect
import os
import re
import subprocess
import sys
import tempfile
from enum import Enum
from functools import cached_property
from pathlib import Path

from paths import ROOT

import leakboard as lb
from leakboard.bench.contracts.cell import digest

SCRIPT = """
from pathlib import Path

import leakboard as lb
from matplotlib.axes import Axes
from typing_extensions import assert_type

r = lb.load("runs/mine")
assert_type(r, lb.Results)
assert_type(r.plot(width=3.3), Axes)
assert_type(r.plot("goals", out="plots", width="column"), list[Path])
assert_type(r.table[0], lb.Result)
assert_type([one.leakage.value for one in r.table], list[float])
assert_type(r.findings(), list[lb.Finding])
assert_type(r.export("table.tex", goal="inputs"), Path)
choice = lb.choose(task="sst2", hide="inputs", max_cost=3.0)
if choice.setting is not None:
    assert_type(choice.setting, lb.Result)
assert_type(lb.run({"name": "x", "task": "reviews", "defenses": ["none"]}, model="minilm"), lb.Results)
assert_type(lb.attack("wire", model="minilm", truth={"text": ["a"], "label": [0]}), lb.Attacked)
assert_type(lb.report(r, "report.html"), Path)
assert_type(lb.check("sap").passed, bool)
assert_type(lb.Canaries(n=20).plant(["a", "b"]), list[str])
assert_type(lb.Canaries(n=20).plant(Path("train.csv")), Path)


class Mine(lb.Defense):
    name = "mine"

    def fine_tune(self, session: lb.Session) -> lb.Tuned:
        raise NotImplementedError
"""
WRONG = """
import leakboard as lb

lb.choose(task="sst2", hide=3)
lb.load("runs/mine").plot(width="wide")
lb.run("smoke", model=3)
"""
NUMPY = re.compile(r"NDArray\[Any\]")


CONFIG = """
[mypy]
strict = true
follow_imports = silent
ignore_missing_imports = true

[mypy-torch.*,transformers.*,pandas.*,numpy.*,scipy.*,sklearn.*,rich.*,ray.*,opacus.*,pyarrow.*,datasets.*,peft.*]
follow_imports = skip
follow_imports_for_stubs = true
"""


def test_a_script_outside_is_checked_in_strict_mode_and_its_mistakes_are_found(tmp_path):
    (tmp_path / "right.py").write_text(SCRIPT, "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIG, "utf-8")
    # Later runs of this checkout are quick by the cache.
    place = digest([getpass.getuser(), str(ROOT)])[:12]
    cache = Path(tempfile.gettempdir()) / f"leakboard-mypy-{place}"
    words = ["--config-file", "mypy.ini", "--no-error-summary", "--cache-dir", str(cache)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "right.py", "wrong.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr + done.stdout
    found = re.findall(r"^(\w+\.py:\d+): error: ", done.stdout, re.MULTILINE)
    assert found == ["wrong.py:4", "wrong.py:5", "wrong.py:6"], done.stdout


def public_functions():
    for name in lb.__all__:
        found = getattr(lb, name)
        if inspect.isfunction(found):
            yield name, found
        elif not inspect.isclass(found):
            continue  # a type alias
        elif not issubclass(found, Enum):
            for own, each in vars(found).items():
                plain = each.fget if isinstance(each, property) else each
                plain = plain.func if isinstance(plain, cached_property) else plain
                plain = getattr(plain, "__func__", plain)
                # The last one is pydantic's.
                if inspect.isfunction(plain) and not own.startswith(("_", "model_post_init")):
                    yield f"{name}.{own}", plain


def test_no_public_signature_holds_any():
    found = {}
    for name, function in public_functions():
        hints = inspect.unwrap(function).__annotations__
        for argument, hint in hints.items():
            if re.search(r"\bAny\b", NUMPY.sub("", str(hint))) and argument != "given":
                found[f"{name}({argument})"] = str(hint)
    assert found == {}
