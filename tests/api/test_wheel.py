"""The wheel holds everything: built from the sources, unpacked, and used without them.

What it does there is in `installed.py`. The tox environment `wheel` installs it for real.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from paths import HOUSE, PUBLISHED, ROOT

import leakboard as lb

SOURCES = (*HOUSE, "leakboard", "results/published")
FILES = ("LICENSE", "README.md", "build_backend.py", "pyproject.toml")

pytestmark = pytest.mark.skipif(not PUBLISHED, reason="nothing has been published yet")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    """The wheels of the project and of a plug-in, built without dependencies and unpacked."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("unpacked")
    ignored = shutil.ignore_patterns("__pycache__", "*.png", "build", "*.egg-info")
    for name in SOURCES:
        shutil.copytree(ROOT / name, tree / name, ignore=ignored, symlinks=True)
    for name in FILES:
        shutil.copy(ROOT / name, tree)
    plugin = shutil.copytree(ROOT / "tests" / "plugin", tree / "plugin", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    words = [*pip, "--disable-pip-version-check", "--wheel-dir", str(tree / "wheels")]
    subprocess.run([*words, str(tree), str(plugin)], check=True)
    for wheel in (tree / "wheels").glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(out)
    return out


def test_every_file_that_the_code_reads_is_in_the_wheel(unpacked):
    there = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    for folder in HOUSE:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"leakboard/{path.relative_to(ROOT).as_posix()}" in there
    assert {"leakboard/__init__.pyi", "leakboard/api.py", "leakboard/py.typed"} <= there


def test_leakboard_is_the_one_name_that_an_installation_takes(unpacked):
    names = {path.name for path in unpacked.iterdir() if path.suffix != ".dist-info"}
    assert names == {"leakboard", "leakboard_sample"}


def test_it_lists_and_knows_the_published_records_and_plug_ins_without_the_checkout(
    unpacked, tmp_path
):
    script = ROOT / "tests" / "api" / "installed.py"
    frame = tmp_path / "matrix.parquet"
    subprocess.run(
        [sys.executable, "-P", script, unpacked, frame], cwd=tmp_path, check=True, timeout=120
    )
    here = tmp_path / "here.parquet"
    lb.published("matrix").export(here)
    pd.testing.assert_frame_equal(pd.read_parquet(frame), pd.read_parquet(here))
