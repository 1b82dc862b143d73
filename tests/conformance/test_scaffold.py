"""Skeletons work as written, and nothing is ever overwritten."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import HOUSE, ROOT

from leakboard.bench.conformance import scaffold
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.methods import registry

KINDS = ("defense", "attack")


def python(folder, *words):
    """Output of Python in a process of its own that imports the project from `folder`."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project."""
    folder = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in HOUSE:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / "leakboard", folder / "leakboard", ignore=ignored, symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "tests" / "builders", folder / "tests" / "builders", ignore=ignored)
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    return folder


def test_skeletons_in_a_checkout_are_registered_and_pass_their_tests_and_the_linter(tree):
    code = (
        "from leakboard.bench.conformance.scaffold import write_skeleton; from leakboard.bench.methods import registry; "
        f"print(*[path for kind in {KINDS} for path in write_skeleton(kind, f'my-{{kind}}')]); "
        "registry.defenses.cache_clear(), registry.attacks.cache_clear(); "  # as the next process finds it
        "print(*registry.defenses(), *registry.attacks())"
    )
    written, found = python(tree, "-c", code).splitlines()
    assert [Path(path) for path in written.split()] == [
        tree / path
        for kind in KINDS
        for path in (f"tests/{kind}s/test_my_{kind}.py", f"{kind}s/my_{kind}.py")
    ]
    assert {"my-defense", "my-attack"} <= set(found.split())
    assert "4 passed" in python(tree, "-m", "pytest", "-q", "tests")
    files = [*tree.glob("*/my_*.py"), *tree.glob("tests/*/test_my_*.py")]
    assert len(files) == 4
    python(tree, "-m", "ruff", "check", *files)
    python(tree, "-m", "ruff", "format", "--check", *files)


@pytest.mark.parametrize("kind", KINDS)
def test_skeleton_elsewhere_can_be_loaded_and_tells_how_to_register_it(tmp_path, kind):
    test, method = scaffold.write_skeleton(kind, "my-own", tmp_path / "new" / "folder")
    assert [p.name for p in (test, method)] == ["test_my_own.py", "my_own.py"]
    assert registry.load_method(str(method)).name == "my-own"
    assert f'[project.entry-points."leakboard.{kind}s"]' in method.read_text()
    assert 'my-own = "my_package.my_own:MyOwn"' in method.read_text()


def test_skeletons_elsewhere_keep_the_rules_by_their_own_tests(tmp_path):
    for kind in KINDS:
        scaffold.write_skeleton(kind, f"my-{kind}", tmp_path)
    out = python(tmp_path, "-m", "pytest", "-q", "-W", "error", ".")
    assert "4 passed" in out


@pytest.mark.parametrize("name", ["session", "defense", "true", "np", "x", "a1-b2"])
def test_no_valid_name_gives_a_class_that_clashes_with_the_skeleton(tmp_path, name):
    _, method = scaffold.write_skeleton("defense", name, tmp_path)
    assert registry.load_method(str(method)).name == name


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("My Noise", "as in my-noise"),
        ("my_noise", "as in my-noise"),
        ("-noise", "as in my-noise"),
        ("noise--more", "as in my-noise"),
        ("2noise", "as in my-noise"),
        ("../noise", "as in my-noise"),
        ("", "as in my-noise"),
        ("class", "no keywords of Python"),
        ("sap", "defense 'sap' already exists"),
        ("eia-nn", "attack 'eia-nn' already exists"),
        ("numpy", "would hide the module 'numpy'"),
    ],
)
def test_bad_or_taken_name_is_refused_with_advice_and_nothing_is_written(tmp_path, name, advice):
    for kind in KINDS:
        with pytest.raises(LeakboardError, match=advice):
            scaffold.write_skeleton(kind, name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["my_own.py", "test_my_own.py"])
def test_file_that_exists_is_kept_and_its_companion_is_not_written(tmp_path, file):
    (tmp_path / file).write_text("precious")
    with pytest.raises(LeakboardError, match=f"{file} exists"):
        scaffold.write_skeleton("attack", "my-own", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [file]
    assert (tmp_path / file).read_text() == "precious"


@pytest.mark.parametrize("checkout", [True, False], ids=["editable", "installed"])
def test_files_go_to_the_working_folder_and_never_to_where_leakboard_lies(
    tmp_path, monkeypatch, checkout
):
    elsewhere, mine = tmp_path / "elsewhere", tmp_path / "mine"
    for folder in (elsewhere / "defenses", mine / "sub"):
        folder.mkdir(parents=True)
    if checkout:
        (elsewhere / "pyproject.toml").write_text("")
    monkeypatch.setattr(scaffold, "ROOT", elsewhere)
    monkeypatch.chdir(mine)
    test, method = scaffold.write_skeleton("defense", "my-own")
    assert sorted(path.name for path in mine.iterdir()) == ["my_own.py", "sub", "test_my_own.py"]
    assert {test.resolve().parent, method.resolve().parent} == {mine}
    assert not list((elsewhere / "defenses").iterdir())
    assert registry.load_method(str(method)).name == "my-own"


def test_folder_that_cannot_be_made_is_an_error_with_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LeakboardError, match=r"test_my_own\.py cannot be written"):
        scaffold.write_skeleton("defense", "my-own", tmp_path / "file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_leaves_no_half_written_skeleton(tmp_path, monkeypatch):
    real = Path.open

    def full(path, mode="r", **kwargs):
        if mode != "x":
            return real(path, mode, **kwargs)
        path.touch(exist_ok=False)
        return open("/dev/full", "w", encoding="utf-8")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(LeakboardError, match="cannot be written: No space left"):
        scaffold.write_skeleton("attack", "my-thing", tmp_path)
    assert not list(tmp_path.iterdir())
