"""Suite files: what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from suite_files import HEAD, Learned, Noise, Plain, Prior, Read

from leakboard.bench.contracts.cell import Recording, TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.suites.suite import load_suite
from leakboard.bench.suites.writer import suite_text
from leakboard.bench.tasks.user_task import UserTask


def test_every_key_of_the_grammar_means_what_it_says(read: Read) -> None:
    suite = read(
        """\
name: my-suite
description: one line
task: [sst2, {name: mine, path: data.csv, text: review, text2: other, label: stars, attributes: [gender]}]
model: [minilm, tiny]
cut: [0, 2]
seeds: [0, 1, 2]
limit: 6000
evaluate: test
train: {epochs: 3, batch_size: 16, learning_rate: 1.0e-3, lora_rank: 4}
record: {examples: 500}
defenses:
  - none
  - sap: {eta: [110, none], bottom: frozen}
attacks: [prior, {aia-mlp: {labelled: [0.05, 0.25]}}]
paper: {paper: SAP, artefact: Table 3, model: roberta-large, task: {mine: theirs}}
"""
    )
    assert (suite.name, suite.description, suite.evaluate) == ("my-suite", "one line", "test")
    own = suite.task[1]
    assert suite.task[0] == "sst2"
    assert isinstance(own, UserTask)
    assert own.name == "mine"
    assert suite.model == ("minilm", "tiny")
    assert suite.cut == (0, 2)
    assert suite.seeds == (0, 1, 2)
    assert suite.limit == 6000
    assert suite.train == (TrainSettings(epochs=3, batch_size=16, learning_rate=1e-3, lora_rank=4),)
    assert suite.record == Recording(examples=500)
    assert tuple(row.defense for row in suite.defenses) == (
        Plain(),
        Noise(eta=110.0),
        Noise(eta="none"),
    )
    assert suite.attacks == (Prior(), Learned(labelled=0.05), Learned(labelled=0.25))
    assert suite.paper is not None
    assert suite.paper.artefact == ("Table 3",)
    assert suite.paper.task == {"mine": "theirs"}
    assert suite.base == Path()


def test_a_short_suite_takes_the_defaults_and_every_attack(read: Read) -> None:
    suite = read(HEAD + "defenses: none\n")
    assert suite.task == ("sst2",)
    assert suite.model == ("minilm",)
    assert (suite.cut, suite.seeds) == ((0,), (0,))
    assert suite.limit is None
    assert tuple(row.defense for row in suite.defenses) == (Plain(),)
    assert suite.attacks == (Learned(), Prior())
    assert suite.train == (TrainSettings(),)


@pytest.mark.parametrize("attacks", ["all", "[aia-mlp, prior]", "\n  - aia-mlp:\n  - prior"])
def test_attacks_can_be_all_or_a_list(read: Read, attacks: str) -> None:
    assert read(HEAD + f"defenses: none\nattacks: {attacks}\n").attacks == (Learned(), Prior())


def test_all_in_a_list_stands_for_the_attacks_that_are_not_beside_it(read: Read) -> None:
    suite = read(HEAD + "defenses: none\nattacks: [all, {aia-mlp: {labelled: [0.2, 0.5]}}]\n")
    assert suite.attacks == (Prior(), Learned(labelled=0.2), Learned(labelled=0.5))
    assert read(HEAD + "defenses: none\nattacks: [aia-mlp, prior, all]\n").attacks == (
        Learned(),
        Prior(),
    )


def test_mistakes_beside_all_are_found_in_their_line(read: Read) -> None:
    with pytest.raises(LeakboardError, match=r":6:.*labeled"):
        read(HEAD + "defenses: none\nattacks:\n  - all\n  - aia-mlp: {labeled: 0.5}\n")


def test_one_task_of_ones_own_needs_no_list(read: Read) -> None:
    suite = read("name: x\ntask: {name: mine, path: d.csv, text: a, label: b}\ndefenses: none\n")
    assert [getattr(task, "name", task) for task in suite.task] == ["mine"]


def test_a_grid_is_the_product_of_its_lists_in_the_written_order(read: Read) -> None:
    suite = read(HEAD + "defenses:\n  sap: {bottom: [trainable, frozen], eta: [90, 75]}\n")
    assert [
        (d.params["bottom"], d.params["eta"]) for d in (row.defense for row in suite.defenses)
    ] == [
        ("trainable", 90.0),
        ("trainable", 75.0),
        ("frozen", 90.0),
        ("frozen", 75.0),
    ]


def test_a_grid_of_training_is_the_product_of_its_lists_too(read: Read) -> None:
    suite = read(
        HEAD + "train: {precision: [float32, bf16], epochs: [1, 3], lora_rank: 4}\ndefenses: none\n"
    )
    assert [(t.precision, t.epochs, t.lora_rank) for t in suite.train] == [
        ("float32", 1, 4),
        ("float32", 3, 4),
        ("bf16", 1, 4),
        ("bf16", 3, 4),
    ]
    assert suite.apart(suite.train[3]) == {"epochs": 3, "precision": "bf16"}
    (one,) = read(HEAD + "train: {precision: bf16}\ndefenses: none\n").train
    assert (one.precision, one.epochs) == ("bf16", 2)
    assert suite.override(seeds=[1]).train == suite.train


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=6, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_a_grid_loses_no_value(read: Read, values: list[int]) -> None:
    suite = read(HEAD + f"defenses: [none, sap: {{eta: {values}}}]\n")
    assert [d.params["eta"] for d in (row.defense for row in suite.defenses[1:])] == values


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "1.0e-3", "0.001", ".001", "+1e-03"])
def test_numbers_in_scientific_notation_are_numbers(read: Read, text: str) -> None:
    suite = read(HEAD + f"defenses: [sap: {{eta: {text}}}]\ntrain: {{learning_rate: {text}}}\n")
    assert suite.train[0].learning_rate == 0.001
    assert tuple(row.defense for row in suite.defenses) == (Noise(eta=0.001),)


def test_words_that_yaml_1_1_reads_as_truth_values_stay_words(read: Read) -> None:
    suite = read("name: on\ntask: sst2\nmodel: [no, off]\ndefenses: [sap: {secure: true}]\n")
    assert (suite.name, suite.model) == ("on", ("no", "off"))
    assert tuple(row.defense for row in suite.defenses) == (Noise(secure=True),)


def test_a_number_as_name_is_a_name(read: Read) -> None:
    assert read("name: 2024\ntask: sst2\ndefenses: none\n").name == "2024"


def test_anchors_can_be_used(read: Read) -> None:
    suite = read(HEAD + "seeds: &s [1, 2]\ncut: *s\ndefenses: none\n")
    assert suite.cut == suite.seeds == (1, 2)


def test_a_suite_cannot_be_changed(read: Read) -> None:
    suite = read(HEAD + "defenses: none\n")
    with pytest.raises(ValueError, match="frozen"):
        suite.name = "other"


def test_the_base_is_the_folder_of_the_file_and_no_content(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.yml").write_text(HEAD + "defenses: none\n")
    a, b = (load_suite(str(tmp_path / folder / "s.yml")) for folder in ("a", "b"))
    assert (a.base, b.base) == (tmp_path / "a", tmp_path / "b")
    assert a.model_dump() == b.model_dump()


def test_override_replaces_values_and_keeps_the_rest(read: Read) -> None:
    suite = read(HEAD + "limit: 9\ndefenses: [none, sap]\n")
    other = suite.override(task="mrpc", model=["tiny"], seeds=[3, 4], limit=5)
    assert (other.task, other.model, other.seeds, other.limit) == (
        ("mrpc",),
        ("tiny",),
        (3, 4),
        5,
    )
    assert (other.defenses, other.base) == (suite.defenses, suite.base)
    assert suite.override() == suite


def test_precision_is_replaced_in_all_training_but_in_rows_that_set_it(read: Read) -> None:
    rows = "train: {epochs: 3, precision: [float32, bf16]}\ndefenses:\n- none\n- sap: {eta: 75}\n  train: {precision: float32}\n"
    suite = read(HEAD + rows).override(precision="bf16")
    assert suite.train == (TrainSettings(epochs=3, precision="bf16"),)
    assert [row.over(suite.train[0]).precision for row in suite.defenses] == ["bf16", "float32"]


def test_a_row_has_settings_of_training_of_its_own_over_those_of_the_suite(read: Read) -> None:
    suite = read(
        HEAD
        + """\
train: {epochs: 3, batch_size: 16}
defenses:
  - none
  - sap: {eta: [75, 50]}
    train: {epochs: 9, tune: head}
  - sap:
    train: {learning_rate: [0.1, 0.2]}
    trials: ["0123456789abcdef"]
"""
    )
    (base,) = suite.train
    assert [str(row) for row in suite.defenses] == [
        "none",
        "sap eta=75 epochs=9 tune=head",
        "sap eta=50 epochs=9 tune=head",
        "sap learning_rate=0.1",
        "sap learning_rate=0.2",
    ]
    assert suite.defenses[0].over(base) == base
    assert suite.defenses[1].over(base) == TrainSettings(epochs=9, batch_size=16, tune="head")
    assert suite.defenses[3].trials == ("0123456789abcdef",)


def test_one_setting_may_stand_twice_where_it_is_trained_in_two_ways(read: Read) -> None:
    twice = (
        "defenses: [{sap: {eta: 75}, train: {tune: head}}, {sap: {eta: 75}, train: {tune: lora}}]\n"
    )
    assert len(read(HEAD + twice).defenses) == 2
    with pytest.raises(LeakboardError, match="listed twice"):
        read(HEAD + twice.replace("lora", "head"))


def test_a_suite_that_is_written_means_the_same_when_it_is_read(read: Read, tmp_path: Path) -> None:
    text = """\
description: "null: 1e3, on"
task: [sst2, mrpc]
seeds: [0, 1]
evaluate: test
train: {epochs: [1, 2], precision: bf16}
plant: {canaries: "My ID is {digits}", audit: 3}
defenses:
  - none:
    train: {epochs: 9, learning_rate: 1.0e-5}
    trials: ["0123456789012345", "abcdefabcdefabcd"]
  - sap: {eta: [none, 75], secure: true}
attacks: [prior, {aia-mlp: {labelled: [0.05, 0.25]}}]
paper: {paper: SAP, artefact: [Table 3, Table 4]}
"""
    suite = read(HEAD.replace("task: sst2\n", "") + text)
    file = tmp_path / "again.yaml"
    file.write_text(suite_text(suite, "two lines\nof words"), "utf-8")
    again = load_suite(file)
    assert again.model_dump() == suite.model_dump()
    assert list(map(str, again.defenses)) == list(map(str, suite.defenses))
    assert list(map(str, again.attacks)) == list(map(str, suite.attacks))
    assert file.read_text("utf-8").startswith("# two lines\n# of words\nname: mine\n")


@pytest.mark.parametrize("evaluate", ["held-out", "train"])
def test_what_trials_selected_on_is_not_reported(read: Read, evaluate: str) -> None:
    row = 'defenses: [none, {sap: {eta: 75}, train: {epochs: 9}, trials: ["0123456789abcdef"]}]\n'
    told = f"reports on '{evaluate}', but the row 'sap eta=75 epochs=9' .* Write `evaluate: test`"
    with pytest.raises(LeakboardError, match=told):
        read(HEAD + f"evaluate: {evaluate}\n" + row)
    with pytest.raises(LeakboardError, match=told):
        read(HEAD + row).override(evaluate=evaluate)
    # The trials themselves are measured there: nothing was chosen by others before.
    assert read(HEAD + f"evaluate: {evaluate}\ndefenses: [none, sap]\n").evaluate == evaluate
