"""Suites as dicts: what a file could hold, and methods that no file can name."""

from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pytest
import torch
import yaml

from leakboard.attacks.lira import Lira
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.methods.defense import Defense
from leakboard.bench.suites.suite import SUITES, Suite, load_suite
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

pytestmark = pytest.mark.usefixtures("real_methods")
LEAST = {"name": "mine", "task": "reviews", "defenses": ["none"]}


def mistakes(**changes) -> list[str]:
    with pytest.raises(LeakboardError) as told:
        load_suite(LEAST | changes)
    return str(told.value).split("\n")


@pytest.mark.parametrize("name", ["smoke", "matrix", "p3eft-figure4"])
def test_a_dict_means_what_the_file_of_the_same_content_means(name):
    text = (SUITES / f"{name}.yaml").read_text()
    assert dict(load_suite(yaml.safe_load(text))) == dict(load_suite(name))


def test_lists_make_grids_in_the_written_order():
    suite = load_suite(LEAST | {"defenses": ["none", {"sap": {"eta": [None, 75, 50]}}]})
    assert list(map(str, suite.defenses)) == ["none", "sap eta=none", "sap eta=75", "sap eta=50"]


def test_a_suite_is_made_from_the_same_keys_and_says_the_same_of_mistakes():
    given = LEAST | {"defenses": ["none", {"sap": {"eta": [75, 50]}}], "seeds": 2}
    assert dict(Suite(**given)) == dict(load_suite(given))
    for wrong in ({"task": "review"}, {"defences": []}, {"seeds": [0, "x"]}):
        with pytest.raises(LeakboardError) as told:
            Suite(**LEAST | wrong)
        assert str(told.value).split("\n") == mistakes(**wrong)


def test_arrays_tensors_ranges_and_tuples_are_lists():
    suite = load_suite(
        LEAST
        | {
            "seeds": range(3),
            "cut": (0, 1),
            "limit": np.int64(40),
            "defenses": [{"sap": {"eta": np.array([75.0, 50.0])}}],
            "plant": {"audit": torch.tensor(20)},
        }
    )
    assert (suite.seeds, suite.cut, suite.limit) == ((0, 1, 2), (0, 1), 40)
    assert [row.defense.eta for row in suite.defenses] == [75.0, 50.0]
    assert suite.plant[0].audit == 20


def test_classes_and_configured_methods_stand_beside_names():
    suite = load_suite(
        LEAST
        | {
            "defenses": [NoDefense, SAP(eta=50), "frozen"],
            "attacks": ["all", Lira(shadows=4)],
            "train": TrainSettings(epochs=5),
        }
    )
    assert list(map(str, suite.defenses)) == ["none", "sap eta=50", "frozen"]
    assert "lira shadows=4" in map(str, suite.attacks)
    assert "eia-nn" in map(str, suite.attacks)
    assert [each.epochs for each in suite.train] == [5]


def test_a_method_beside_all_is_not_listed_twice():
    nearest = next(a for a in load_suite(LEAST).attacks if a.name == "eia-nn")
    suite = load_suite(LEAST | {"attacks": [nearest, "all"]})
    assert [a.name for a in suite.attacks].count("eia-nn") == 1


def test_the_dict_is_left_as_it_was():
    given = LEAST | {"defenses": ["none", {"sap": {"eta": [1, 2]}}], "attacks": "all"}
    before = json.dumps(given)
    load_suite(given)
    assert json.dumps(given) == before


def test_mistakes_are_told_all_at_once_by_their_keys():
    told = mistakes(
        task="review",
        train={"epochs": "two"},
        defenses=["nonee", {"sap": {"etta": [1, 2]}}, {"sap": {"eta": [1, "x"]}}],
        seedss=1,
    )
    assert told == [
        "suite: task: unknown task 'review'. Did you mean 'reviews'?",
        "suite: defenses[0]: unknown defense 'nonee'. Did you mean 'none'?",
        "suite: defenses[1].sap: unknown parameter 'etta'. Did you mean 'eta'?",
        "suite: defenses[2].sap.eta[1]: must be a number, got 'x'",
        "suite: train.epochs: must be a whole number, got 'two'",
        "suite: unknown key 'seedss'. Did you mean 'seeds'?",
    ]


class Elsewhere(SAP):
    """Calls itself by the name of another one."""


class Unnamed(Defense):
    """Is no method yet."""


class Twin(NoDefense):
    """One of two of this name."""

    name: ClassVar[str] = "twin"


class Other(NoDefense):
    """The other one."""

    name: ClassVar[str] = "twin"


@pytest.mark.parametrize(
    ("defenses", "told"),
    [
        ([Elsewhere], "defenses[0]: another defense is named 'sap', too; rename yours"),
        ([Twin, Other], "defenses[1]: another defense is named 'twin', too; rename yours"),
        ([SAP, SAP()], "defenses[1]: 'sap' is listed twice"),
        (
            [Unnamed],
            "the class Unnamed, which is not a subclass of leakboard.Defense that sets `name`",
        ),
        ([dict], "the class dict, which is not a subclass of leakboard.Defense"),
        ([Lira()], "defenses[0]: expected one defense, got Lira(shadows=16)"),
        ([None], "For training without protection write the word none."),
        ([3], "defenses[0]: expected one defense, got 3."),
        ([{SAP: {}}], "defenses[0]: expected a word as key, got the class SAP"),
        ([], "defenses: must be a list with at least one entry, got []"),
    ],
)
def test_what_is_no_method_is_told_with_its_place(defenses, told):
    assert told in mistakes(defenses=defenses)[0]


def test_a_list_that_holds_itself_is_told_and_not_followed():
    endless = []
    endless.append(endless)
    assert "task: is nested more than 10 levels deep" in mistakes(task=endless)[0]


def test_a_dict_without_a_name_or_task_says_so():
    with pytest.raises(
        LeakboardError, match="suite: missing key 'name'\nsuite: missing key 'task'"
    ):
        load_suite({"defenses": ["none"]})


METHOD = '''
from typing import ClassVar
from pydantic import Field
from leakboard.bench.methods.method import Source
from leakboard.defenses.none import NoDefense

class Mine(NoDefense):
    """A defense."""
    name: ClassVar[str] = "mine"
    source: ClassVar[Source] = Source("here", "this file")
    scale: float = Field(1.0, ge=0)
'''


def test_a_suite_names_a_defense_by_its_file(tmp_path):
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "my_defense.py").write_text(METHOD)
    suite = (
        "name: mine\ntask: reviews\ndefenses:\n- none\n- methods/my_defense.py: {scale: [1, 2]}\n"
    )
    (tmp_path / "my.yaml").write_text(suite + "- {methods/my_defense.py:Mine: {scale: 3}}\n")
    with pytest.raises(LeakboardError, match="another defense is named 'mine'"):
        load_suite(tmp_path / "my.yaml")  # one file by two names
    (tmp_path / "my.yaml").write_text(suite)
    rows = load_suite(tmp_path / "my.yaml").defenses
    assert list(map(str, rows)) == ["none", "mine scale=1", "mine scale=2"]
    absolute = str(tmp_path / "methods" / "my_defense.py")
    assert str(load_suite(LEAST | {"defenses": [absolute]}).defenses[0]) == "mine"


def test_a_file_that_holds_no_such_method_is_a_mistake_of_the_suite(tmp_path):
    (tmp_path / "my_defense.py").write_text(METHOD)
    assert "my_other.py: no such Python file" in mistakes(defenses=["my_other.py"])[0]
    told = mistakes(attacks=[str(tmp_path / "my_defense.py")])[0]
    assert "expected one attack, but" in told
