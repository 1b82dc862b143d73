"""Settings of training are chosen for each row on what is held out for it, from as many trials as for every other row."""

from __future__ import annotations

import numpy as np
import pytest
from cells import load_tiny
from records import record

import leakboard as lb
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.methods import registry
from leakboard.bench.records.store import Store
from leakboard.bench.running import Engine
from leakboard.bench.running import plan as planning
from leakboard.bench.scoring.checks import flags
from leakboard.bench.suites.row import SuiteRow
from leakboard.bench.suites.suite import load_suite
from leakboard.bench.suites.writer import suite_text
from leakboard.bench.tasks import load_task, train_on_public
from leakboard.bench.tuning import grid
from leakboard.bench.tuning.grid import SEEDS, Choice, tune
from leakboard.bench.tuning.trials import TRIALS, middle_strengths, trials_of
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.dpnr import DPNR
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.jft import JFT
from leakboard.defenses.redacted import Redacted
from leakboard.defenses.sap import SAP

SUITE = {
    "name": "mine",
    "task": "reviews",
    "model": "tiny-bert",
    "limit": 60,
    "seeds": [0, 1],
    "train": {"epochs": 1, "batch_size": 16, "learning_rate": 1e-3},
    "attacks": ["eia-nn"],
    "plant": {"audit": 10},
}


@pytest.fixture(autouse=True, scope="module")
def _loaded_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "load_backbone", load_tiny)
        yield


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """One tuning, and the folder of its trials."""
    folder = tmp_path_factory.mktemp("trials")
    return tune(suite("none"), folder), folder


def suite(*defenses, **changed):
    return load_suite({**SUITE, "defenses": list(defenses), **changed})


def test_trials_are_trained_and_judged_on_parts_of_the_training_split_and_attacked_by_nothing(
    tuned,
):
    found, _ = tuned
    assert found.records
    for one in found.records:
        assert one.cell.evaluate == "held-out"
        assert one.status == "ok"
        assert (one.leaks, one.cell.plant) == ([], None)
        assert one.utility.n < 30


def test_the_best_on_what_was_held_out_is_chosen_and_all_trials_stand_in_its_row(tuned):
    found, folder = tuned
    (choice,) = found.choices
    assert choice.chosen.utility == max(trial.utility for trial in choice.trials)
    (row,) = found.suite.defenses
    assert row.over(found.suite.train[0]) == choice.chosen.settings
    assert set(row.trials) == {record.key for record in Store(folder).read_all()}
    assert row.trials[:SEEDS] == choice.chosen.keys


def test_trials_have_seeds_that_the_suite_does_not_report(tuned):
    (choice,) = tuned[0].choices
    assert choice.trials
    for trial in choice.trials:
        assert [record.cell.seed for record in trial.records] == [2, 3]


@pytest.mark.parametrize("kind", ["lora", "head", "full"])
@pytest.mark.parametrize("name", sorted({*registry.defenses()} - {"blackout", "untuned"}))
def test_every_row_has_the_same_number_of_trials_the_suites_own_settings_first(name, kind):
    base, row = TrainSettings(tune=kind), SuiteRow(defense=registry.defense(name)())
    trials = trials_of(row, base, 1000, 0 if kind == "full" else 2)
    assert trials[0].settings == base
    assert len({(trial.row.defense, trial.settings) for trial in trials}) == TRIALS


def test_what_a_row_sets_itself_stays():
    base, row = (
        TrainSettings(),
        SuiteRow(defense=DPSGD(), train=TrainSettings(tune="lora", epochs=7)),
    )
    tried = [trial.settings for trial in trials_of(row, base, 100, 2)]
    assert {(each.tune, each.epochs) for each in tried} == {("lora", 7)}
    assert len({each.learning_rate for each in tried}) > 1
    free = trials_of(SuiteRow(defense=DPSGD()), base, 100, 2)
    assert sorted(trial.settings.tune for trial in free) == ["head"] * 4 + ["lora"] * 4
    # A language model has no head of its own.
    assert {t.settings.tune for t in trials_of(SuiteRow(defense=DPSGD()), base, 100, 0)} == {"lora"}
    assert free[0].settings == base
    # All weights stay all weights, at rates that they bear and in batches that noise does not drown.
    every = trials_of(SuiteRow(defense=DPSGD()), TrainSettings(tune="full"), 400, 0)[1:]
    assert {t.settings.tune for t in every} == {"full"}
    assert {t.settings.batch_size for t in every} == {100, 400}
    assert {t.settings.learning_rate for t in every} == {base.learning_rate, 3 * base.learning_rate}
    heads = SuiteRow(defense=DPSGD(), train=TrainSettings(tune="head"))
    tried = trials_of(heads, base, 100, 2)[1:]
    assert {trial.settings.learning_rate for trial in tried} == {0.1, 0.03, 0.3, 1.0}


@pytest.mark.parametrize(
    ("defense", "epochs"),
    [
        (Frozen(), {10, 30}),
        (DPNR(epsilon=10), {10, 30}),
        (DPNR(epsilon=10, encoder="trained"), {2, 4}),
    ],
)
def test_a_frozen_encoder_gets_the_trials_of_a_head(defense, epochs):
    tried = trials_of(SuiteRow(defense=defense), TrainSettings(epochs=2), 100, 2)[1:]
    assert {trial.settings.epochs for trial in tried} == epochs


def test_a_trial_may_train_the_first_phase_otherwise_and_the_chosen_row_says_how(tmp_path):
    trials = trials_of(SuiteRow(defense=JFT()), TrainSettings(epochs=2), 1000, 2)
    assert {trial.row.defense.phase1_epochs for trial in trials} == {None, 2, 4}
    alone = trials_of(SuiteRow(defense=Redacted()), TrainSettings(epochs=2), 1000, 2)
    phase1 = [trial.row.defense.of_phase1(trial.settings) for trial in trials]
    assert [(each.epochs, each.learning_rate) for each in phase1] == [
        (trial.settings.epochs, trial.settings.learning_rate) for trial in alone
    ]
    noisy = trials_of(SuiteRow(defense=JFT(phase1="light-noise")), TrainSettings(), 1000, 2)
    private = trials_of(SuiteRow(defense=DPSGD()), TrainSettings(), 1000, 2)
    assert [trial.settings for trial in noisy] == [trial.settings for trial in private]
    fixed = trials_of(SuiteRow(defense=JFT(phase1_epochs=7)), TrainSettings(epochs=2), 1000, 2)
    assert {trial.row.defense.phase1_epochs for trial in fixed} == {7}
    chosen = next(trial for trial in trials if trial.row.defense.phase1_epochs)
    row = Choice(SuiteRow(defense=JFT()), [chosen, *trials]).tuned
    file = tmp_path / "tuned.yaml"
    file.write_text(suite_text(suite("none").model_copy(update={"defenses": (row,)})))
    (read,) = load_suite(file).defenses
    assert read.defense == chosen.row.defense
    assert read.over(TrainSettings(epochs=2)) == chosen.settings


def test_what_trains_nothing_is_not_tuned(tmp_path):
    found = tune(suite(Blackout(), "none"), tmp_path)
    assert [str(choice.row) for choice in found.choices] == ["none"]
    assert found.suite.defenses[0] == SuiteRow(defense=Blackout())
    with pytest.raises(LeakboardError, match="nothing in it is trained"):
        tune(suite(Blackout()), tmp_path)


@pytest.mark.parametrize("evaluate", ["train", "held-out"])
def test_a_suite_that_selects_on_what_it_reports_is_refused(tmp_path, evaluate):
    with pytest.raises(LeakboardError, match="what was selected on must not be reported"):
        tune(suite("none", evaluate=evaluate), tmp_path)
    assert not Store(tmp_path).read_all()


def test_a_suite_that_leaves_a_labelled_test_aside_is_told(tuned):
    # The trials are the same whatever the suite reports on.
    assert "reviews has a labelled test" in tuned[0].notes[0]
    assert tune(suite("none", evaluate="test"), tuned[1]).notes == []


def test_a_tuning_that_was_stopped_goes_on(tuned):
    whole, folder = tuned
    files = sorted(folder.glob("*.json"))
    files[0].unlink()
    before = {file: file.stat().st_mtime_ns for file in files[1:]}
    again = tune(suite("none"), folder)
    assert again.suite == whole.suite
    assert {file: file.stat().st_mtime_ns for file in files[1:]} == before


def test_the_strengths_of_a_defense_may_share_the_trials_of_the_middle_one(tmp_path):
    asked = suite({"sap": {"eta": [None, 90, 60, 40]}}, "none", seeds=[0])
    found = tune(asked, tmp_path, one_strength=True)
    assert {r.cell.defense.params.get("eta", "none") for r in found.records} == {60, "none"}
    assert len(found.records) == 2 * TRIALS * SEEDS
    *curve, plain = found.suite.defenses
    assert [row.defense for row in curve] == [row.defense for row in asked.defenses[:-1]]
    assert len({(row.train, row.trials, row.tuned_on) for row in curve}) == 1
    assert plain.trials != curve[0].trials
    assert [choice.alike for choice in found.choices] == [True, True, False, True, False]


def test_a_curve_is_rows_that_differ_in_one_parameter():
    kinds = {"eta": [50, 40], "bottom": ["frozen", "trainable"]}
    rows = suite("frozen", {"sap": kinds}, {"dpsgd": {"epsilon": [None, 8]}}).defenses
    decide = [str(rows[place].defense) for place in middle_strengths(rows)]
    assert decide[0] == "frozen"
    assert decide[1:5] == [str(rows[place].defense) for place in (1, 1, 3, 3)]
    assert decide[5:] == ["dpsgd epsilon=8"] * 2
    # Records leave `head` out at its default, which is a value as every other.
    heads = suite({"sap": {"eta": 50, "head": ["customer", "vendor"]}}).defenses
    assert middle_strengths(heads) == middle_strengths(heads[::-1]) == [0, 0]
    alike = SuiteRow(defense=SAP(eta=30), train=TrainSettings(epochs=5))
    assert middle_strengths((SuiteRow(defense=SAP(eta=50)), alike)) == [0, 1]


def test_what_a_trial_changes_of_a_defense_is_changed_at_every_strength():
    tuned, other = SuiteRow(defense=JFT(epsilon=3)), SuiteRow(defense=JFT(epsilon=8))
    for trial in trials_of(tuned, TrainSettings(), 100, 2):
        moved = trial.at(other, tuned).row.defense
        assert moved == trial.row.defense.model_copy(update={"epsilon": 8.0})
        assert trial.at(tuned, tuned) == trial


class Crowded(Engine):
    """Too little memory for the first trial."""

    def run(self, *given):
        first, *others = super().run(*given)
        lost = {"status": "out-of-memory", "reason": "no room", "utility": None}
        return [first.model_copy(update=lost), *others]


def test_a_choice_at_the_edge_of_what_was_tried_is_told(tuned):
    trials = trials_of(SuiteRow(defense=SAP()), TrainSettings(), 1000, 2)
    middle = next(t for t in trials if t.settings == TrainSettings())
    longer = next(t for t in trials if t.settings.epochs > middle.settings.epochs)
    faster = max(trials, key=lambda trial: trial.settings.learning_rate)
    for chosen, at_edge in ((middle, False), (longer, True), (faster, True)):
        assert Choice(SuiteRow(defense=SAP()), [chosen, *trials]).is_at_edge == at_edge
    assert not Choice(SuiteRow(defense=SAP()), [middle]).is_at_edge
    found, _ = tuned
    assert (
        any("tried are best for none" in note for note in found.notes)
        == found.choices[0].is_at_edge
    )


def test_trials_that_could_not_be_trained_are_told(tuned):
    found, folder = tuned
    assert not any("not trained" in note for note in found.notes)
    again = tune(suite("none"), folder, engine=Crowded())
    (note,) = (note for note in again.notes if "not trained" in note)
    assert note.startswith(f"1 of {len(found.records)} trials on private texts")
    assert "no room" in note


def test_what_was_chosen_is_written_as_a_suite_that_means_it_and_its_records_name_the_trials(
    tmp_path,
):
    file = tmp_path / "tuned.yaml"
    asked = suite("none", {"sap": {"eta": 75}}, seeds=0)
    found = lb.tune(asked, file, tmp_path / "t", progress=False, precision="bf16")
    assert {record.cell.train.precision for record in found.records} == {"bf16"}
    assert load_suite(file).model_dump() == found.suite.model_dump()
    assert "held out" in file.read_text()
    (record,) = [
        r
        for r in lb.run(file, tmp_path / "r", progress=False, seeds=0).records
        if r.cell.defense.name == "none"
    ]
    assert record.cell.train == found.choices[0].chosen.settings
    assert record.provenance.trials == found.suite.defenses[0].trials


def test_a_file_that_could_not_be_written_is_refused_before_the_first_trial(tmp_path):
    with pytest.raises(LeakboardError, match=r"ends in \.yaml"):
        lb.tune(suite("none"), tmp_path / "tuned.txt", tmp_path / "t", progress=False)
    own = {"name": "own", "path": "own.csv"}
    with pytest.raises(LeakboardError, match="write the file to that folder"):
        lb.tune(suite("none", task=own), tmp_path / "tuned.yaml", tmp_path / "t", progress=False)
    assert not (tmp_path / "t").exists()


@pytest.fixture(scope="module")
def tuned_by_claim(tmp_path_factory):
    """One tuning of a row with a claim and of one without."""
    folder = tmp_path_factory.mktemp("claims")
    return tune(suite("none", SAP(eta=75), seeds=[0]), folder)


def test_rows_with_a_claim_are_tuned_on_public_texts_and_the_others_on_held_out_ones(
    tuned_by_claim,
):
    plain, noisy = tuned_by_claim.choices
    assert [choice.tuned_on for choice in (plain, noisy)] == ["private", "public"]
    for choice, split in ((plain, "held-out"), (noisy, "public")):
        records = [record for trial in choice.trials for record in trial.records]
        assert {record.cell.evaluate for record in records} == {split}
        assert all(record.status == "ok" for record in records)
    assert [row.tuned_on for row in tuned_by_claim.suite.defenses] == ["private", "public"]
    text = suite_text(tuned_by_claim.suite)
    assert text.count("tuned_on: public") == 1


def test_trials_on_public_texts_see_no_private_example():
    task = load_task("reviews")
    public = train_on_public(task, np.random.default_rng(0))
    private = {*task.splits["train"].texts}
    seen = [text for name in ("train", "public") for text in public.splits[name].texts]
    assert private.isdisjoint(seen)
    assert {*seen} <= {*task.splits["auxiliary"].texts}
    assert set(public.splits["train"].texts).isdisjoint(public.splits["public"].texts)


def test_a_task_without_public_texts_is_tuned_on_private_ones_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(grid, "no_public_training", lambda task: "no public texts")
    found = tune(suite(SAP(eta=75), seeds=[0]), tmp_path)
    assert [choice.tuned_on for choice in found.choices] == ["private"]
    assert "claims do not cover this tuning" in " ".join(found.notes)
    with pytest.raises(LeakboardError, match="cannot be tuned on public texts"):
        tune(suite(SAP(eta=75)), tmp_path, on="public")
    with pytest.raises(LeakboardError, match="expected auto, public or private"):
        tune(suite(SAP(eta=75)), tmp_path, on="publik")


def test_a_model_is_not_tuned_on_public_texts_that_it_has_learned(tmp_path):
    learned = suite(DPSGD(epsilon=8), task="dialogues", model="dialogue-gpt", attacks=[])
    with pytest.raises(LeakboardError, match="'dialogue-gpt' was trained on the public texts"):
        tune(learned, tmp_path, on="public")


def test_a_claim_whose_training_was_chosen_on_private_examples_says_so():
    claim = SAP(eta=75).claim()
    made = record(claim=claim)

    def flagged(**changed):
        provenance = made.provenance.model_copy(update={"trials": ("a",), **changed})
        one = made.model_copy(update={"provenance": provenance})
        return flags([one]).get((one.key, -1), ())

    assert flagged() == flagged(tuned_on="private") == ("claim-tuned-on-private",)
    assert flagged(tuned_on="public") == flagged(trials=()) == ()
