"""The workflows take only what is pinned, and no job that runs the project's code may write."""

import configparser
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(
    not WORKFLOWS, reason="no checkout: the workflows are not installed"
)


def jobs():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        for name, job in workflow["jobs"].items():
            yield pytest.param(workflow, job, id=f"{path.stem}-{name}")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path):
    for line in re.findall(r"uses: *(.+)", path.read_text()):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


@pytest.mark.parametrize(("workflow", "job"), list(jobs()))
def test_a_job_that_may_write_runs_no_code_of_the_project(workflow, job):
    permissions = job.get("permissions", workflow["permissions"])
    steps = job["steps"]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    if "write" in permissions.values():
        assert not checkouts
        assert all(step["run"].startswith("gh release create ") for step in steps if "run" in step)
    else:
        assert set(permissions.values()) <= {"read"}


def test_tools_are_pinned_by_hash_to_the_tested_versions():
    tools = (ROOT / ".github" / "tools.txt").read_text().replace("\\\n", "")
    pins = re.findall(r"^(\S+)==([^\s;]+)(.*)$", tools, re.MULTILINE)
    tested = dict(
        re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    )
    assert {"build", "setuptools", "tox"} <= {name for name, _, _ in pins}
    assert all("--hash=sha256:" in rest for _, _, rest in pins)
    assert all(tested.get(name, version) == version for name, version, _ in pins)


def test_tools_come_from_the_hashed_file_only():
    commands = chain.from_iterable(
        re.findall(r"pip install.*", path.read_text()) for path in WORKFLOWS
    )
    for command in commands:
        assert (
            "-c constraints.txt" in command or "--require-hashes -r .github/tools.txt" in command
        ), command


def test_the_newest_and_the_lowest_versions_have_jobs_on_the_pythons_that_the_package_allows():
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    job = tests["versions"]
    pythons = {one["environment"]: one["python"] for one in job["strategy"]["matrix"]["include"]}
    assert pythons.keys() == {"newest", "lowest"}
    assert least == f">={pythons['lowest']}"
    assert tox["testenv:lowest"]["base_python"] == f"python{pythons['lowest']}"
    assert job["steps"][-1]["run"] == "tox run -e ${{ matrix.environment }}"
    for step in (step for job in tests.values() for step in job["steps"] if "run" in step):
        for name in re.findall(r"tox run -e (\w+)", step["run"]):
            assert f"testenv:{name}" in tox
