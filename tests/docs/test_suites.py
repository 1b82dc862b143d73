"""The reference of suite files names every key that a suite can have, with its default."""

from __future__ import annotations

import re

import pytest
import yaml
from paths import ROOT

from leakboard.bench.contracts import Plant, Recording, TrainSettings
from leakboard.bench.suites.row import SuiteRow
from leakboard.bench.suites.suite import Printed, Suite, load_suite
from leakboard.bench.tasks import SplitFiles, UserTask

PAGE = ROOT / "docs" / "suites.md"
PARTS = {
    "Suite": Suite,
    "A row of defenses": SuiteRow,
    "Own task": UserTask,
    "Files by split": SplitFiles,
    "Training": TrainSettings,
    "Recording": Recording,
    "Planting": Plant,
    "Printed numbers": Printed,
}
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+) \| `(.+)` \|$", re.MULTILINE)


def rows(section: str) -> list[tuple[str, ...]]:
    """Key, type, default, meaning and example of each line of a section's table."""
    parts = re.split(r"^###? ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return ROW.findall(dict(part.split("\n", 1) for part in parts)[section])


def plain(value):
    """A default as the page writes it: empty settings are those of the defaults."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else value


@pytest.mark.parametrize("section", PARTS)
def test_every_key_of_a_suite_is_explained_in_order(section):
    assert [key for key, *_ in rows(section)] == list(PARTS[section].model_fields)


@pytest.mark.parametrize("section", PARTS)
def test_a_default_is_that_of_the_code(section):
    for key, _, default, *_ in rows(section):
        field = PARTS[section].model_fields[key]
        if field.is_required():
            assert default == "–", key
        else:
            assert yaml.safe_load(default.strip("`")) == plain(field.default), key


@pytest.mark.parametrize("section", ["Training", "Recording", "Planting", "Own task"])
def test_every_example_is_taken(section):
    for key, *_, example in rows(section):
        given = {"name": "mine", "path": "mine.csv"} if section == "Own task" else {}
        given |= {"audit": 10} if key == "candidates" else {}
        assert PARTS[section].model_validate(given | {key: yaml.safe_load(example)})


def test_the_suite_of_the_page_is_a_suite():
    block = re.search(r"^```yaml\n(name: .*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)[1]
    suite = load_suite(yaml.safe_load(block))
    assert [str(row) for row in suite.defenses][:1] == ["none"]
    assert len(suite.defenses) == 5
