"""What is run, what is kept, and what is tried again."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import ClassVar

import pytest
import torch
from cells import ATTACKS, TRAIN, make

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.bench.contracts.cell import Seeds, attack_id
from leakboard.bench.contracts.errors import LeakboardError, MissingExtra
from leakboard.bench.contracts.threat import Goal, ThreatModel
from leakboard.bench.exchange import Tuned, has_transcript
from leakboard.bench.methods.attack import Attack
from leakboard.bench.methods.method import Source, spec_of
from leakboard.bench.records.store import Store
from leakboard.bench.running.cell_context import Inputs, context_of
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

NN = NearestNeighbour()


class Told(Reporter):
    def __init__(self):
        self.warnings, self.reused = [], []

    def warned(self, message):
        self.warnings.append(message)

    def finished(self, record, reused):
        self.reused.append(reused)


class Flaky(Attack):
    """Fails on label inference until it is mended; its other goal needs attributes or is refused."""

    name: ClassVar[str] = "flaky"
    source: ClassVar[Source] = Source("a test")
    threat: ClassVar[ThreatModel] = ThreatModel(frozenset({Goal.LABEL}), frozenset())
    mended: ClassVar[bool] = False

    def guess(self, seen, knowledge, rng):
        if not self.mended:
            raise RuntimeError("not yet")
        return LogitGradient().guess(seen, knowledge, rng)


@pytest.fixture
def trained(monkeypatch):
    """Names of the defenses that were fine-tuned."""
    names = []
    for cls in (SAP, NoDefense, Blackout):
        original = cls.fine_tune

        def counted(self, session, original=original):
            names.append(self.name)
            return original(self, session)

        monkeypatch.setattr(cls, "fine_tune", counted)
    return names


def go(folder, *defenses, **fields):
    told = Told()
    records = Runner(make(*defenses, **fields), Store(folder), told).run()
    return records, told


def breaking(monkeypatch, error, cls=SAP):
    def fine_tune(self, session):
        raise error

    monkeypatch.setattr(cls, "fine_tune", fine_tune)


def test_second_run_trains_nothing_and_gives_the_same_records(tmp_path, trained):
    first, _ = go(tmp_path, SAP(), NoDefense())
    second, told = go(tmp_path, SAP(), NoDefense())
    assert trained == ["sap", "none"]
    assert second == first
    assert told.reused == [True, True]


def test_stopped_run_goes_on_with_the_next_cell(tmp_path, trained, monkeypatch):
    with monkeypatch.context() as patch:
        breaking(patch, KeyboardInterrupt(), NoDefense)
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path, SAP(), NoDefense())
    assert len(Store(tmp_path).read_all()) == 1
    records, _ = go(tmp_path, SAP(), NoDefense())
    assert trained == ["sap", "none"]
    assert [r.status for r in records] == ["ok", "ok"]


def test_added_attack_runs_alone_and_joins_the_others(tmp_path, trained, monkeypatch):
    ((first,), _) = go(tmp_path, SAP(), attacks=[NN])
    monkeypatch.setattr(NearestNeighbour, "guess", lambda *_: pytest.fail("ran again"))
    ((merged,), told) = go(tmp_path, SAP(), attacks=[NN, LogitGradient()])
    assert [x.attack.name for x in merged.leaks] == ["eia-nn", "eia-nn", "logit-gradient"]
    assert merged.leaks[:2] == first.leaks
    assert told.reused == [False]
    # Fewer attacks than are known is no reason to forget the rest.
    ((kept,), told) = go(tmp_path, SAP(), attacks=[LogitGradient()])
    assert kept == merged
    assert trained == ["sap", "sap"]


def test_an_added_attack_that_does_not_fit_adds_its_reason_without_training(tmp_path, trained):
    go(tmp_path, NoDefense(), attacks=[NN])
    ((record,), told) = go(tmp_path, NoDefense(), attacks=[NN, LogitGradient()])
    assert trained == ["none"]
    assert told.reused == [True]
    assert [x.reason for x in record.leaks][-1] == "none does not send logit-gradients"
    assert Store(tmp_path).read(record.key) == record


def test_other_version_of_an_attack_is_another_attack(tmp_path, monkeypatch):
    go(tmp_path, SAP(), attacks=[LogitGradient()])
    monkeypatch.setattr(LogitGradient, "version", 2)
    ((record,), _) = go(tmp_path, SAP(), attacks=[LogitGradient()])
    assert [x.attack.version for x in record.leaks] == [1, 2]
    assert len({attack_id(x.attack) for x in record.leaks}) == 2


def test_merged_record_equals_one_that_was_made_at_once(tmp_path):
    go(tmp_path / "a", SAP(eta=180), attacks=ATTACKS[:1])
    ((merged,), _) = go(tmp_path / "a", SAP(eta=180), attacks=ATTACKS)
    ((whole,), _) = go(tmp_path / "b", SAP(eta=180), attacks=ATTACKS)
    assert merged.outcome() == whole.outcome()


def test_failed_cell_is_a_record_and_is_tried_again(tmp_path, monkeypatch, trained):
    with monkeypatch.context() as patch:
        breaking(patch, ValueError("broken"))
        ((bad, good), _) = go(tmp_path, SAP(), NoDefense())
    assert (bad.status, good.status) == ("failed", "ok")
    assert bad.reason.startswith("ValueError: broken (test_runner.py:")
    assert Store(tmp_path).read(bad.key) == bad
    ((again, kept), told) = go(tmp_path, SAP(), NoDefense())
    assert (again.status, told.reused) == ("ok", [False, True])
    assert kept == good
    assert trained == ["none", "sap"]


def test_an_interrupt_that_python_wraps_stops_the_run(tmp_path, monkeypatch):
    wrapped = RuntimeError("Error calling __set_name__ on 'dirfs'")
    wrapped.__cause__ = KeyboardInterrupt()
    breaking(monkeypatch, wrapped)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, SAP())
    assert Store(tmp_path).read_all() == []


def test_failed_attack_is_tried_again_even_where_another_goal_was_skipped(tmp_path, monkeypatch):
    goals = frozenset({Goal.LABEL, Goal.ATTRIBUTE})
    monkeypatch.setattr(Flaky, "threat", ThreatModel(goals, frozenset()))
    plan = make(SAP(), attacks=[Flaky()])
    # A task without attributes: one goal is skipped with its reason, the other one fails.
    pairing = plan.cells[0].pairings[0]
    part = replace(
        pairing,
        goals=frozenset({Goal.LABEL}),
        skip_reasons={Goal.ATTRIBUTE: "no private attributes"},
    )
    plan = replace(plan, cells=(replace(plan.cells[0], pairings=(part,)),))
    (first,) = Runner(plan, Store(tmp_path)).run()
    assert {x.goal: x.status for x in first.leaks} == {"label": "failed", "attribute": "skipped"}
    monkeypatch.setattr(Flaky, "mended", True)
    (second,) = Runner(plan, Store(tmp_path)).run()
    assert {x.goal: x.status for x in second.leaks} == {"label": "ok", "attribute": "skipped"}
    assert len(second.leaks) == 2


def test_failure_while_an_attack_is_added_keeps_what_was_measured(tmp_path, monkeypatch):
    ((first,), _) = go(tmp_path, SAP(), attacks=[NN])
    with monkeypatch.context() as patch:
        breaking(patch, MemoryError())
        ((second,), _) = go(tmp_path, SAP(), attacks=[NN, LogitGradient()])
    assert second.status == "ok"
    assert second.utility == first.utility
    assert second.leaks[:2] == first.leaks
    (added,) = second.leaks[2:]
    assert (added.status, added.goal) == ("out-of-memory", "label")
    assert "run again for this attack, ended out-of-memory" in added.reason
    ((third,), _) = go(tmp_path, SAP(), attacks=[NN, LogitGradient()])
    assert [x.status for x in third.leaks] == ["ok"] * 3


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        # Of CUDA itself and of FAISS; and of cuBLAS, which has to be given room beside torch.
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`: no memory"),
        "allocation",
    ],
)
def test_memory_that_runs_out_is_a_record_and_is_tried_again(tmp_path, monkeypatch, error):
    with monkeypatch.context() as patch:
        if error == "allocation":
            patch.setattr(SAP, "fine_tune", lambda self, session: torch.empty(2**52))
        else:
            breaking(patch, error)
        ((record,), _) = go(tmp_path, SAP())
    assert record.status == "out-of-memory"
    assert "memory" in record.reason
    again, whole = go(tmp_path, SAP())[0][0], go(tmp_path / "other", SAP())[0][0]
    assert again.status == "ok"
    assert again.outcome() == whole.outcome()  # nothing is left of the first try


@pytest.mark.parametrize(("error", "status"), [("diverged", "diverged"), ("skipped", "skipped")])
def test_diverged_and_skipped_cells_are_not_tried_again(tmp_path, error, status, trained):
    fields = {"train": TRAIN | {"learning_rate": 1e4, "epochs": 8, "batch_size": 4}}
    plan = make(SAP(), **fields if error == "diverged" else {})
    if error == "skipped":
        plan = replace(plan, cells=(replace(plan.cells[0], skip_reason="not at this cut"),))
    (first,) = Runner(plan, Store(tmp_path)).run()
    assert first.status == status
    assert first.reason
    n = len(trained)
    assert Runner(plan, Store(tmp_path)).run() == [first]
    assert len(trained) == n


def test_missing_extra_ends_the_run_with_advice_and_is_no_record(tmp_path, monkeypatch):
    breaking(monkeypatch, MissingExtra("something", "cpu"))
    with pytest.raises(LeakboardError, match="pip install"):
        go(tmp_path, SAP())
    assert not list(tmp_path.glob("*.json"))


def test_full_disk_ends_the_run_and_keeps_earlier_records(tmp_path, monkeypatch):
    go(tmp_path, SAP())
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(LeakboardError, match="could not be written"):
            go(tmp_path, SAP(), NoDefense())
    assert [path.suffix for path in tmp_path.iterdir() if path.is_file()] == [".json"]
    assert go(tmp_path, SAP(), NoDefense())[1].reused == [True, False]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "renamed"])
def test_damaged_record_is_set_aside_told_and_run_again(tmp_path, damage, trained):
    ((first, second), _) = go(tmp_path, SAP(), NoDefense())
    path = Store(tmp_path).path(first.key)
    text = path.read_text()
    path.write_text(
        {
            "truncated": text[:-100],
            "flipped": text.replace('"status": "ok"', '"status": "oj"', 1),
            "renamed": Store(tmp_path).path(second.key).read_text(),
        }[damage]
    )
    spoilt = path.read_text()
    ((again, _), told) = go(tmp_path, SAP(), NoDefense())
    assert again.outcome() == first.outcome()
    assert told.reused == [False, True]
    assert (tmp_path / "corrupt" / path.name).read_text() == spoilt
    assert len(told.warnings) == 1
    assert path.name in told.warnings[0]
    assert "run again" in told.warnings[0]
    assert len(Store(tmp_path).read_all()) == 2


def test_defense_that_sends_what_it_does_not_declare_is_a_failed_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(SAP, "emits", SAP.emits - {"logits"})
    ((record,), _) = go(tmp_path, SAP(), attacks=[NN])
    assert record.status == "failed"
    assert "'emits' does not declare" in record.reason


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (torch.zeros(3, 2), r"of shape \(48, 2\), got \(3, 2\)$"),
        (torch.zeros(48, 1), r"of shape \(48, 2\), got \(48, 1\)$"),
        (torch.zeros(48), r"of shape \(48, 2\), got \(48,\)$"),
        (torch.full((48, 2), torch.nan), "^predict must return finite scores$"),
    ],
)
def test_predictor_that_returns_rubbish_is_a_failed_cell(tmp_path, monkeypatch, scores, reason):
    class Rubbish(Tuned):
        def predict(self, tokens, split):
            return scores

    monkeypatch.setattr(SAP, "fine_tune", lambda self, session: Rubbish())
    ((record,), _) = go(tmp_path, SAP())
    assert record.status == "failed"
    assert re.search(reason, record.reason)


@pytest.mark.parametrize("returned", [None, torch.nn.Linear(2, 2)])
def test_defense_that_returns_no_tuned_model_is_a_failed_cell(tmp_path, monkeypatch, returned):
    monkeypatch.setattr(SAP, "fine_tune", lambda self, session: returned)
    ((record,), _) = go(tmp_path, SAP())
    assert record.status == "failed"
    assert record.reason == (
        f"fine_tune must return a lb.Predictor or another lb.Tuned, got {type(returned).__name__}"
    )


def test_recorded_rows_and_drawn_data_depend_on_the_data_seed_only(monkeypatch):
    plan = make(SAP(eta=50), NoDefense(), seeds=[0, 1], limit=60, record={"examples": 20})
    drawn = {}
    for planned in plan.cells:
        inputs = context_of(plan, planned).inputs
        rows = {split: rows.tolist() for split, rows in inputs.recorded.items()}
        assert all(len(set(r)) == 20 and r == sorted(r) for r in rows.values())
        drawn.setdefault(planned.cell.seed, []).append(
            (rows, inputs.tokens["train"].ids.values.tolist())
        )
    assert drawn[0][0] == drawn[0][1]
    assert drawn[0][0][0] != drawn[1][0][0]
    assert drawn[0][0][1] != drawn[1][0][1]


def test_inputs_are_made_once_for_the_cells_that_share_them(tmp_path, monkeypatch):
    made, original = [], Inputs.of.__func__
    monkeypatch.setattr(
        Inputs, "of", classmethod(lambda cls, *a: made.append(1) or original(cls, *a))
    )
    go(tmp_path, SAP(), NoDefense(), seeds=[0, 1])
    assert len(made) == 2


def test_record_says_what_was_run(tmp_path):
    plan = make(SAP(eta=50), NoDefense())
    first, second = Runner(plan, Store(tmp_path)).run()
    assert first.cell.defense == spec_of(SAP(eta=50))
    assert first.cell.defense.params["bottom"] == "frozen"
    assert (first.undefended, second.undefended) == (False, True)
    assert first.claim.parameters == {"eta": 50}
    assert second.claim is None
    assert first.cost.trained_parameters == 2 * 2 * 2 * 8 * 32 + 2 * 32 + 2
    drawn = plan.tasks[first.cell.data_hash].limited(48, Seeds.of(0).data)
    assert first.predictions["truth"] == drawn.splits["dev"].labels.tolist()


def test_a_transcript_that_is_missing_or_incomplete_is_written_by_a_later_run(tmp_path, trained):
    plan, store = make(SAP(eta=50), limit=24), Store(tmp_path / "records")
    (first,) = Runner(plan, store).run()
    sent = tmp_path / "sent" / first.key
    told = Told()
    Runner(plan, store, told, tmp_path / "sent").run()
    assert has_transcript(sent)
    assert told.reused == [False]
    (sent / "messages-00000.safetensors").unlink()
    Runner(plan, store, told, tmp_path / "sent").run()
    assert has_transcript(sent)
    before = len(trained)
    assert Runner(plan, store, told, tmp_path / "sent").run() == [first]
    assert len(trained) == before
    assert told.reused == [False, False, True]


def test_a_folder_that_is_removed_during_the_run_stops_it_with_a_sentence(tmp_path):
    folder = tmp_path / "records"

    class Removes(Reporter):
        def finished(self, record, reused):
            shutil.rmtree(folder)

    plan = make(NoDefense(), attacks=[], limit=16, seeds=(0, 1))
    with pytest.raises(LeakboardError, match="records: the folder was removed during the run"):
        Runner(plan, Store(folder), Removes()).run()
    assert not folder.exists()
