"""How people join and cite: the files that a forge reads, and the check of a pull request's records."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from leakboard.bench import __version__
from leakboard.bench.contracts.threat import Goal

ROOT = Path(__file__).parent.parent
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def test_citation_names_the_version_that_it_is_of():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert all(set(author) == {"name"} for author in cited["authors"])


def test_the_changelog_has_the_version_on_top_and_every_version_once():
    told = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \(", told, re.MULTILINE)
    assert versions[0] == __version__
    assert len(versions) == len(set(versions)) > 1


@pytest.mark.parametrize("form", [f for f in FORMS if f.stem != "config"], ids=lambda f: f.stem)
def test_a_form_has_what_a_forge_asks_of_it(form):
    told = yaml.safe_load(form.read_text("utf-8"))
    assert {"name", "description", "body"} <= told.keys()
    asked = [part for part in told["body"] if part["type"] != "markdown"]
    ids = [part["id"] for part in asked]
    assert len(ids) == len(set(ids)) > 0
    for part in told["body"]:
        assert part["type"] in KINDS
        assert part["attributes"].get("label") or part["attributes"].get("value")
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_the_form_of_an_attack_knows_every_goal():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/attack.yml").read_text("utf-8"))
    (goal,) = (part for part in form["body"] if part.get("id") == "goal")
    assert {each.value for each in Goal} <= set(goal["attributes"]["options"])


@pytest.fixture
def checked(tmp_path):
    """A checkout with two submissions and a suite of the project's own; returns what was verified."""
    calls = tmp_path / "calls"
    binary = tmp_path / "bin" / "leakboard"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\necho "$@" >> {calls}\ncase "$2" in *bad) exit 1;; esac\n')
    binary.chmod(0o755)
    place = tmp_path / "checkout"
    for folder in ("good", "bad", "matrix"):
        (place / "results/published" / folder).mkdir(parents=True)
        (place / "results/published" / folder / "one.json").write_text("{}")
        if folder != "matrix":
            (place / "results/published" / folder / "submission.json").write_text("{}")
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]

    def git(*words):
        done = subprocess.run(["git", *who, *words], cwd=place, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    base = git("rev-parse", "HEAD")

    def check(**changes):
        for name, text in changes.items():
            file = place / "results/published" / name / "one.json"
            file.unlink() if text is None else file.write_text(text)
        (place / "README.md").write_text("else")
        git("add", "-A")
        git("commit", "-qm", "after")
        done = subprocess.run(
            [ROOT / ".github/verify_changed.sh", base],
            cwd=place,
            env=os.environ | {"PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        told = calls.read_text().splitlines() if calls.exists() else []
        return done.returncode, [line.split("/")[-1] for line in told], done.stdout

    return check


def test_only_records_that_changed_are_verified(checked):
    assert checked(good="{ }")[:2] == (0, ["good"])


def test_one_that_does_not_hold_fails_the_check_and_the_next_is_verified_all_the_same(checked):
    assert checked(good="{ }", bad="{ }")[:2] == (1, ["bad", "good"])


def test_a_record_that_went_is_a_change(checked):
    assert checked(good=None)[:2] == (0, ["good"])


def test_records_of_the_projects_own_suites_are_not_slipped_in(checked):
    code, verified, said = checked(matrix="{ }")
    assert (code, verified) == (1, [])
    assert "matrix has no submission.json" in said


def test_a_commit_that_does_not_exist_is_no_pass(checked, tmp_path):
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [ROOT / ".github/verify_changed.sh", "0" * 40],
        cwd=tmp_path / "empty",
        capture_output=True,
    )
    assert done.returncode == 2
