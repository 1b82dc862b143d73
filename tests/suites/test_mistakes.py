"""What is said about a mistake in a suite file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from suite_files import HEAD, Read

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.suites.suite import load_suite


def mistakes(read: Read, text: str) -> list[str]:
    with pytest.raises(LeakboardError) as e:
        read(text)
    return str(e.value).splitlines()


BAD = {
    "misspelt key": (
        HEAD + "modle: tiny\ndefenses: none\n",
        "my.yaml:3: unknown key 'modle'. Did you mean 'model'?",
    ),
    "misspelt key of a part": (
        HEAD + "train:\n  batch_size: 8\n  epoch: 1\ndefenses: none\n",
        "my.yaml:5: train: unknown key 'epoch'. Did you mean 'epochs'?",
    ),
    "key that only the program sets": (
        HEAD + "base: /\ndefenses: none\n",
        "my.yaml:3: unknown key 'base'. Known: attacks, cut, defenses, description, evaluate, "
        "limit, model, name, paper, plant, record, seeds, task, train, utility.",
    ),
    "value out of range": (
        HEAD + "defenses:\n  - none\n  - sap:\n      eta: -5\n",
        "my.yaml:6: defenses[1].sap.eta: must be greater than 0 or 'none', got -5",
    ),
    "value of a grid out of range": (
        HEAD + "defenses:\n  - sap:\n      eta:\n        - 100\n        - 0\n",
        "my.yaml:7: defenses[0].sap.eta[1]: must be greater than 0 or 'none', got 0",
    ),
    "value of the wrong type": (
        HEAD + "defenses: [sap: {eta: high}]\n",
        "my.yaml:3: defenses[0].sap.eta: must be a number or 'none', got 'high'",
    ),
    "truth value as number": (
        HEAD + "seeds: true\ndefenses: none\n",
        "my.yaml:3: seeds: must be a whole number, got 'true'",
    ),
    "endless number": (
        HEAD + "defenses: [sap: {eta: 1e999}]\n",
        "my.yaml:3: defenses[0].sap.eta: must be a finite number, got inf",
    ),
    "word outside the choice": (
        HEAD + "defenses: [sap: {bottom: frozn}]\n",
        "my.yaml:3: defenses[0].sap.bottom: must be 'frozen' or 'trainable', got 'frozn'",
    ),
    "precision that is spelt otherwise": (
        HEAD + "train: {precision: bfloat16}\ndefenses: none\n",
        "my.yaml:3: train.precision: must be 'float32' or 'bf16', got 'bfloat16'. Did you mean 'bf16'?",
    ),
    "precision of a grid that is none": (
        HEAD + "train:\n  epochs: [1, 2]\n  precision: [bf16, fp32]\ndefenses: none\n",
        "my.yaml:5: train.precision: must be 'float32' or 'bf16', got 'fp32'. Did you mean 'float32'?",
    ),
    "setting of training without a value": (
        HEAD + "train: {epochs: []}\ndefenses: none\n",
        "my.yaml:3: train: must have at least one value for each key, got []",
    ),
    "grid of training that is too large": (
        HEAD + f"train: {{epochs: &n {list(range(1, 40))}, batch_size: *n}}\ndefenses: none\n",
        "my.yaml:3: train: is a grid of 1,521 settings; the limit is 1,000",
    ),
    "misspelt setting of a row": (
        HEAD + "defenses:\n  - sap: {eta: 75}\n    train: {epoch: 3}\n",
        "my.yaml:5: defenses[0].train: unknown key 'epoch'. Did you mean 'epochs'?",
    ),
    "setting of a row out of range": (
        HEAD + "defenses:\n  - sap:\n    train:\n      epochs: 0\n",
        "my.yaml:6: defenses[0].train.epochs: must be greater than or equal to 1, got 0",
    ),
    "settings of a row that are none": (
        HEAD + "defenses:\n  - sap:\n    train: 3\n",
        "my.yaml:5: defenses[0].train: expected settings such as {epochs: 30}, got 3",
    ),
    "trials that are no keys": (
        HEAD + "defenses:\n  - sap:\n    trials: [12]\n",
        "my.yaml:5: defenses[0].trials: expected keys of records, each in quotes, got [12]",
    ),
    "values that do not fit together": (
        HEAD + "defenses:\n  - sap: {bottom: trainable, secure: true}\n",
        "my.yaml:4: defenses[0].sap: a trainable bottom cannot be secure",
    ),
    "unknown defense": (
        HEAD + "defenses:\n  - none\n  - sapp: {eta: 5}\n",
        "my.yaml:5: defenses[1]: unknown defense 'sapp'. Did you mean 'sap'?",
    ),
    "unknown attack": (
        HEAD + "defenses: none\nattacks: priors\n",
        "my.yaml:4: attacks: unknown attack 'priors'. Did you mean 'prior'?",
    ),
    "unknown parameter": (
        HEAD + "defenses:\n  - sap:\n      bottom: frozen\n      etaa: [1, 2]\n",
        "my.yaml:6: defenses[0].sap: unknown parameter 'etaa'. Did you mean 'eta'?",
    ),
    "unknown parameter of an attack": (
        HEAD + "defenses: none\nattacks:\n  - aia-mlp: {labeled: 0.1}\n",
        "my.yaml:5: attacks[0].aia-mlp: unknown parameter 'labeled'. Did you mean 'labelled'?",
    ),
    "parameters at the depth of the name": (
        HEAD + "defenses:\n  - sap:\n    eta: 5\n",
        "my.yaml:4: defenses[0]: expected one defense, got {'eta': 5, 'sap': None}. Write a name, or "
        "name: {parameter: value}, with parameters indented deeper than the name.",
    ),
    "parameters that are no mapping": (
        HEAD + "defenses: [sap: 5]\n",
        "my.yaml:3: defenses[0].sap: expected parameters such as {name: value}, got 5",
    ),
    "null as defense": (
        HEAD + "defenses:\n  - null\n",
        "my.yaml:4: defenses[0]: expected the name of a defense, got null. "
        "For training without protection write the word none.",
    ),
    "no defense": (
        HEAD + "defenses: []\n",
        "my.yaml:3: defenses: must be a list with at least one entry, got []",
    ),
    "empty axis of a grid": (
        HEAD + "defenses: [sap: {eta: []}]\n",
        "my.yaml:3: defenses[0].sap.eta: expected at least one value, got an empty list",
    ),
    "same defense twice": (
        HEAD + "defenses:\n  - sap: {eta: 100}\n  - sap\n",
        "my.yaml:5: defenses[1]: 'sap' is listed twice",
    ),
    "same seed twice": (
        HEAD + "seeds: [1, 1]\ndefenses: none\n",
        "my.yaml:3: seeds: 1 is listed twice",
    ),
    "fraction as seed": (
        HEAD + "seeds: [0,\n  1.5]\ndefenses: none\n",
        "my.yaml:4: seeds[1]: must be a whole number, got 1.5",
    ),
    "negative cut": (
        HEAD + "cut: -1\ndefenses: none\n",
        "my.yaml:3: cut: must be greater than or equal to 0, got -1",
    ),
    "empty list": (
        HEAD + "model: []\ndefenses: none\n",
        "my.yaml:3: model: must be a list with at least one entry, got []",
    ),
    "key without value": (
        HEAD + "model:\ndefenses: none\n",
        "my.yaml:3: model: must be text, got null",
    ),
    "word instead of a mapping": (
        HEAD + "train: fast\ndefenses: none\n",
        "my.yaml:3: train: must be a mapping, got 'fast'",
    ),
    "unknown task": (
        "name: x\ntask:\n  - mrpc\n  - sst3\ndefenses: none\n",
        "my.yaml:4: task[1]: unknown task 'sst3'. Did you mean 'sst2'?",
    ),
    "own task with the name of a known one": (
        "name: x\ntask: {name: sst2, path: d.csv}\ndefenses: none\n",
        "my.yaml:2: task.name: 'sst2' is the name of a known task; choose another one",
    ),
    "own task with a name that is no file name": (
        "name: x\ntask: {name: a/b, path: d.csv}\ndefenses: none\n",
        "my.yaml:2: task.name: must match pattern '^[A-Za-z0-9][A-Za-z0-9_.-]*$', got 'a/b'",
    ),
    "misspelt split of an own task": (
        "name: x\ntask:\n  name: mine\n  path: {train: a.csv, dv: b.csv}\ndefenses: none\n",
        "my.yaml:4: task.path: unknown key 'dv'. Did you mean 'dev'?",
    ),
    "missing split of an own task": (
        "name: x\ntask:\n  name: mine\n  path: {train: a.csv}\ndefenses: none\n",
        "my.yaml:4: task.path: missing key 'dev'",
    ),
    "own task with a path of the wrong type": (
        "name: x\ntask:\n  name: mine\n  path: 5\ndefenses: none\n",
        "my.yaml:4: task.path: must be a path, got 5",
    ),
    "own task without its file": (
        "name: x\ntask:\n  - sst2\n  - {name: mine, text: a, label: b}\ndefenses: none\n",
        "my.yaml:4: task[1]: missing key 'path'",
    ),
    "misspelt key of an own task": (
        "name: x\ntask:\n  name: mine\n  path: d.csv\n  text: a\n  label: b\n  atributes: [c]\n"
        "defenses: none\n",
        "my.yaml:7: task: unknown key 'atributes'. Did you mean 'attributes'?",
    ),
    "missing key": ("name: x\ndefenses: none\n", "my.yaml:1: missing key 'task'"),
    "duplicated key": (
        HEAD + "defenses: none\ntask: mrpc\n",
        "my.yaml:4: the key 'task' already stands in line 2",
    ),
    "duplicated parameter": (
        HEAD + "defenses:\n  - sap:\n      eta: 5\n      eta: 6\n",
        "my.yaml:6: defenses[0].sap: the key 'eta' already stands in line 5",
    ),
    "key that is a list": (HEAD + "defenses: none\n[a]: b\n", "my.yaml:4: expected a word as key"),
    "tag": (
        HEAD + "defenses: none\nlimit: !!python/name:os.system 5\n",
        "my.yaml:4: limit: the tag tag:yaml.org,2002:python/name:os.system is not supported; "
        "remove it",
    ),
    "list that holds itself": (
        HEAD + "defenses: none\nseeds: &s [*s]\n",
        "my.yaml:4: seeds: is nested more than 10 levels deep",
    ),
    "brackets without end": (
        HEAD + "seeds: " + "[" * 9000,
        "my.yaml:1: is nested too deeply to be read",
    ),
    "empty file": (
        "# nothing\n",
        "my.yaml:1: expected a mapping with the keys name, task and defenses, got an empty file",
    ),
    "list instead of a mapping": (
        "- sap\n",
        "my.yaml:1: expected a mapping with the keys name, task and defenses, got a list",
    ),
    "open bracket": (
        HEAD + "seeds: [0, 1\ndefenses: none\n",
        "my.yaml:4: not valid YAML: while parsing a flow sequence: expected ',' or ']', but got ':'",
    ),
    "tab": (
        HEAD + "train:\n\tepochs: 1\n",
        "my.yaml:4: not valid YAML: while scanning for the next token: found character '\\t' that "
        "cannot start any token; indent with spaces",
    ),
    "control character": (
        HEAD + "description: \x07\n",
        "my.yaml:3: not valid YAML: special characters are not allowed",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_mistake_is_told_with_line_place_and_advice(read: Read, text: str, message: str) -> None:
    assert message in mistakes(read, text)


def test_all_mistakes_of_a_file_are_told_at_once_in_the_order_of_lines(read: Read) -> None:
    told = mistakes(
        read,
        "nam: x\ntask: sst2\ntrain: {epochs: 0}\nseeds: [-1]\n"
        "defenses: [spa, sap: {eta: 0}]\nattacks: [pior]\n",
    )
    assert [line.split(": ")[0] for line in told] == [
        f"my.yaml:{line}" for line in (1, 1, 3, 4, 5, 5, 6)
    ]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "defenses: [spa]\n",
        HEAD + "defenses: [sap: {etaa: [1, 2, 3], bottom: [frozen, trainable]}]\n",
        "name: x\ntask: {name: mine, path: {train: a.csv}}\ndefenses: none\n",
    ],
    ids=["a wrong defense as a missing one", "for each point of a grid", "for each alternative"],
)
def test_one_mistake_is_not_told_twice(read: Read, text: str) -> None:
    assert len(mistakes(read, text)) == 1


@pytest.mark.slow
@given(st.text(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_no_text_breaks_the_reader_other_than_by_a_leakboard_error(read: Read, text: str) -> None:
    with pytest.raises(LeakboardError, match=r"my\.yaml:\d+: "):
        read(text.encode("utf-8", "replace").decode())


def test_a_file_that_is_not_utf8_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_bytes(b"name: x\ndescription: caf\xe9\n")
    with pytest.raises(LeakboardError, match=r"my\.yaml:2: is not UTF-8 text; save it as UTF-8"):
        load_suite("my.yaml")


def test_a_byte_order_mark_is_no_part_of_the_first_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(HEAD + "defenses: none\n", encoding="utf-8-sig")
    assert load_suite("my.yaml").name == "mine"


def test_a_missing_file_is_told_with_the_nearest_one(read: Read) -> None:
    read(HEAD + "defenses: none\n")
    with pytest.raises(LeakboardError, match=r"me\.yaml: no such file. Did you mean 'my\.yaml'\?"):
        load_suite("me.yaml")
    with pytest.raises(
        LeakboardError, match=r"no such file. The built-in suite is called 'smoke'\."
    ):
        load_suite("smoke.yaml")


def test_a_folder_in_place_of_a_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").mkdir()
    with pytest.raises(LeakboardError, match=r"my\.yaml: cannot be read: Is a directory"):
        load_suite("my.yaml")


@pytest.mark.parametrize("name", ["smoks", "Smoke"])
def test_an_unknown_built_in_suite_gets_the_nearest_one(name: str) -> None:
    with pytest.raises(LeakboardError, match=rf"unknown suite '{name}'. Did you mean 'smoke'\?"):
        load_suite(name)


def test_a_built_in_name_cannot_leave_the_folder() -> None:
    with pytest.raises(LeakboardError, match="unknown suite"):
        load_suite("../suites/smoke")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": [0, -1]}, "seeds: must be greater than or equal to 0, got -1"),
        ({"limit": 0}, "limit: must be greater than or equal to 1, got 0"),
        ({"model": []}, "model: must be a list with at least one entry, got []"),
        ({"task": ["sst2", "sst2"]}, "task: 'sst2' is listed twice"),
        ({"task": "sst3"}, "task: unknown task 'sst3'. Did you mean 'sst2'?"),
        ({"precision": "fp16"}, "precision: expected float32 or bf16, got 'fp16'"),
    ],
)
def test_override_refuses_what_a_file_could_not_hold(
    read: Read, changes: dict[str, Any], message: str
) -> None:
    suite = read(HEAD + "defenses: none\n")
    with pytest.raises(LeakboardError) as e:
        suite.override(**changes)
    assert str(e.value) == message
