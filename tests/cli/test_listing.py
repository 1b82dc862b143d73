"""What `leakboard list` and `leakboard plan` show."""

from __future__ import annotations

import io
import json
from typing import ClassVar

import pytest
from cells import make, run
from rich.console import Console

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.attacks.prior import Prior
from leakboard.bench.backbones.embedded import EMBEDDED
from leakboard.bench.cli import listing
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.methods import registry
from leakboard.bench.methods.method import Source
from leakboard.bench.records.store import Store
from leakboard.bench.running.plan import make_plan
from leakboard.bench.suites.suite import load_suite, suite_names
from leakboard.bench.tasks.catalogue import listing as task_listing
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP


def shown(*parts, width=100):
    """The text, with spaces and line breaks as single spaces."""
    console = Console(width=width, file=io.StringIO())
    for part in parts:
        console.print(part)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return " ".join(text.split())


def planned(store, *defenses, **fields):
    return shown(*listing.plan(make(*defenses, **fields), store, (), True, True), width=160)


@pytest.fixture(scope="module")
def listed():
    return {kind: list(listing.kind_parts(kind, "")) for kind in listing.catalogue()}


def words(text):
    return " ".join(text.split())


def test_list_shows_every_defense_with_what_it_sends_its_parameters_and_its_source(listed):
    text = shown(*listed["defenses"])
    for name, cls in registry.defenses().items():
        assert f" {name} " in text
        assert f"sends: {', '.join(sorted(cls.emits))}" in text
        assert f"source: {words(str(cls.source))}" in text
        assert all(f"{parameter} = " in text for parameter in cls.model_fields)
    assert "eta = 75, bottom = frozen, bottom_learning_rate = 1e-05" in text
    assert "Send noisy vectors instead of text. sends:" in text


def test_list_shows_every_attack_with_its_threat_model(listed):
    text = shown(*listed["attacks"])
    for name, cls in registry.attacks().items():
        assert f" {name} " in text
        assert f"guesses: {', '.join(sorted(cls.threat.goals))}" in text
    assert "reads: representations or tokens knows: base weights" in text
    assert "reads: nothing knows: auxiliary text" in text
    assert "reads: logit-gradients knows: nothing else" in text


def test_list_shows_every_task_model_and_suite(listed):
    tasks, models, suites = (shown(*listed[kind]) for kind in ("tasks", "models", "suites"))
    for task in task_listing():
        assert task.name in tasks
        assert task.description in tasks
    for name, description in EMBEDDED.items():
        assert f"{name} {description}" in models
    assert "a folder or hub id" in models
    for name in suite_names():
        assert f"{name} {words(load_suite(name).description)}" in suites


def test_list_shows_the_first_sentence_of_a_docstring_and_brackets_as_they_are(monkeypatch):
    class Odd(NoDefense):
        """Reads E[i] (i.e. a row)
        of [bold]. And a second sentence.

        And a paragraph.
        """

        name: ClassVar[str] = "odd"
        source: ClassVar[Source] = Source("A [red] paper")

    known = {**registry.defenses(), "odd": Odd}
    monkeypatch.setattr(registry, "defenses", lambda: known)
    text = shown(*listing.kind_parts("defenses", "odd"))
    assert "odd Reads E[i] (i.e. a row) of [bold]. sends:" in text
    assert "source: A [red] paper" in text


def test_without_a_kind_all_names_are_shown_on_one_page():
    text = shown(*listing.names(), width=80)
    for kind, names in listing.catalogue().items():
        assert f"{kind} ({len(names)})" in text
        assert all(name in text for name in names)
    console = Console(width=80, file=io.StringIO())
    console.print(*listing.names())
    assert len(console.file.getvalue().splitlines()) < 50


def test_a_kind_is_a_line_for_each_name():
    for kind, names in listing.catalogue().items():
        console = Console(width=80, file=io.StringIO())
        console.print(*listing.kind_parts(kind), sep="\n")
        text = console.file.getvalue()
        below = text[text.index("───") :].splitlines()[1:]
        first = [line.split(" ")[1] for line in below if line.startswith(" ") and line[1] != " "]
        assert first == [name.split(" ")[0] for name in names]
        assert "…" not in text


def test_a_text_shows_all_about_those_that_hold_it_and_nothing_else():
    text = shown(*listing.kind_parts("attacks", "Token"))
    assert "token-gradient" in text
    assert "reads: activations or gradients or logit-gradients" in text
    assert "eia-nn" not in text  # it says the word, and has another name
    assert " crt " in shown(*listing.kind_parts("defenses", "confidential language"))


def test_a_goal_lists_all_attacks_on_it_and_all_defenses_made_for_it():
    text = shown(*listing.kind_parts("attacks", "labels"))
    for name, cls in registry.attacks().items():
        assert (f" {name} " in text) == ("label" in cls.threat.goals)
    assert "All details: leakboard list attacks" in text
    assert "p3eft" in listing.entries("defenses", "label")
    first = shown(*listing.kind_parts("attacks"))
    assert first.startswith("inputs: ")
    assert "attributes: aia-finetune, aia-mlp, aia-public, prior" in first


def test_an_unknown_kind_or_text_is_told_with_the_nearest():
    with pytest.raises(LeakboardError, match=r"no kind 'defences'. Did you mean 'defenses'"):
        list(listing.kind_parts("defences"))
    with pytest.raises(
        LeakboardError, match=r"no entry contains 'sap-ctl'. Did you mean 'sap-cti'"
    ):
        list(listing.kind_parts("defenses", "sap-ctl"))


# Plan


def test_plan_says_how_long_by_records_of_such_cells(tmp_path):
    store = Store(tmp_path)
    assert "the duration is unknown" in planned(store, NoDefense(), SAP(eta=50))
    whole = run(tmp_path, NoDefense())
    slow = [
        record.model_copy(update={"cost": record.cost.model_copy(update={"total_seconds": 240.0})})
        for record in whole
    ]
    (none,) = make(NoDefense(), seeds=(1,)).cells
    assert listing.duration([none] * 60, slow).startswith("about 4 h 0 min in one process")
    # Of another method there is none, so that all cells of the task and model count.
    (other,) = make(SAP(eta=50), seeds=(1,)).cells
    assert listing.duration([other], slow).startswith("about 4 min")
    assert "min in one" not in planned(store, NoDefense())  # nothing is left to run


def test_plan_begins_with_its_counts_and_says_how_to_see_the_rest(tmp_path):
    made = make(NoDefense(), SAP(eta=50), seeds=tuple(range(6)), attacks=(LogitGradient(),))
    first, *parts = listing.plan(made, Store(tmp_path))
    assert str(first).startswith("12 cells: 0 done, 0 skipped, 12 to run")
    text = shown(*parts, width=160)
    assert text.count("tiny-bert, cut 0") == 10
    assert "2 more cells with --all" in text
    assert "skipped:" not in text
    assert "--why says which" in text


def test_plan_always_says_why_a_whole_defense_is_skipped(tmp_path):
    together = registry.defense("sap+jft")()
    made = make(NoDefense(), together, attacks=(LogitGradient(),))
    text = " ".join(shown(*listing.plan(made, Store(tmp_path)), width=200).split())
    assert "skipped: all attacks on sap+jft: jft cannot be combined" in text


def test_plan_shows_each_cell_with_its_axes_and_the_parameters_that_were_set(tmp_path):
    text = planned(Store(tmp_path), NoDefense(), SAP(eta=50), seeds=(3, 4))
    for seed in (3, 4):
        assert f"reviews tiny-bert, cut 0 {seed} none 2 to run" in text
        assert f"reviews tiny-bert, cut 0 {seed} sap eta=50 3 to run" in text
    assert "attacks: eia-nn, logit-gradient, prior" in text
    assert "4 cells: 0 done, 0 skipped, 4 to run" in text


def test_plan_tells_each_reason_once_with_the_attacks_and_defenses_that_it_concerns(tmp_path):
    class Deep(SAP):
        """Runs nowhere."""

        name: ClassVar[str] = "deep"

        def skip(self, conditions):
            return "only below the ground"

    class Picky(NearestNeighbour):
        """Runs nowhere."""

        name: ClassVar[str] = "picky"

        def skip(self, conditions):
            return "only above the clouds"

    text = planned(
        Store(tmp_path),
        NoDefense(),
        SAP(eta=50),
        SAP(eta=60),
        Deep(),
        attacks=(LogitGradient(), Picky()),
        seeds=(0, 1),
    )
    once = (
        "skipped: logit-gradient (label) on none: none does not send logit-gradients",
        "skipped: picky (inversion) on none, sap: only above the clouds",
        "skipped: all attacks on deep: only below the ground",
    )
    for line in once:
        assert text.count(line) == 1
    assert text.count("skipped:") == len(once)
    assert "deep 0 skipped" in text
    assert "8 cells: 0 done, 2 skipped, 6 to run" in text


def test_plan_tells_what_is_done_and_what_an_attack_that_came_later_still_lacks(tmp_path):
    run(tmp_path, NoDefense(), attacks=[NearestNeighbour()])
    store = Store(tmp_path)
    same = planned(store, NoDefense(), attacks=[NearestNeighbour()])
    assert "none 1 done" in same
    assert "1 cells: 1 done, 0 skipped, 0 to run" in same
    more = planned(store, NoDefense(), Frozen(), attacks=[NearestNeighbour(), Prior()])
    assert "none 2 to complete: prior" in more
    assert "frozen 2 to run" in more
    assert "2 cells: 0 done, 0 skipped, 2 to run" in more


def test_plan_tells_a_failed_cell_and_one_that_diverged_apart(tmp_path, monkeypatch):
    def fail(self, session):
        raise ZeroDivisionError("no head")

    with monkeypatch.context() as patched:
        patched.setattr(Frozen, "fine_tune", fail)
        run(tmp_path, Frozen())
    rate = {"learning_rate": 1e6, "max_grad_norm": 1e9, "epochs": 20}
    (diverged,) = run(tmp_path, NoDefense(), train=rate)
    assert diverged.status == "diverged"
    store = Store(tmp_path)
    assert "frozen 2 failed before, to run again" in planned(store, Frozen())
    text = planned(store, NoDefense(), train=rate)
    assert "done: diverged" in text
    assert "1 done" in text


def test_plan_names_the_setting_of_training_where_there_are_several(tmp_path):
    suite = {
        "name": "two",
        "task": "reviews",
        "model": "tiny-bert",
        "train": {"batch_size": 16, "precision": ["float32", "bf16"]},
        "defenses": ["none", "frozen"],
        "attacks": ["prior"],
    }
    plan = make_plan(load_suite(suite))
    assert [p.cell.train.precision for p in plan.cells] == ["float32"] * 3 + ["bf16"] * 3
    text = shown(*listing.plan(plan, Store(tmp_path)), width=160)
    assert "none precision=float32" in text
    assert "frozen precision=bf16" in text
    assert "precision" not in planned(Store(tmp_path), NoDefense())


def test_plan_tells_a_damaged_record_and_leaves_it_where_it_is(tmp_path):
    (record,) = run(tmp_path, NoDefense())
    file = tmp_path / f"{record.key}.json"
    file.write_text(file.read_text()[:-20])
    before = file.read_bytes()
    text = planned(Store(tmp_path), NoDefense())
    assert "damaged (not valid JSON" in text
    assert "1 to run" in text
    shown = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert shown == [file.name]
    assert file.read_bytes() == before


def test_plan_of_a_folder_that_is_not_there_does_not_make_it(tmp_path):
    planned(Store(tmp_path / "new"), NoDefense())
    assert not list(tmp_path.iterdir())


def test_record_of_a_later_version_stops_the_plan(tmp_path):
    (record,) = run(tmp_path, NoDefense())
    file = tmp_path / f"{record.key}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 99}))
    with pytest.raises(LeakboardError, match="Upgrade leakboard"):
        planned(Store(tmp_path), NoDefense())
