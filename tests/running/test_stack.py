"""Cells that are run together give the records that each gives by itself, whatever happens to one."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from cells import make

from leakboard.bench.backbones.stacked import Stacked
from leakboard.bench.contracts.errors import LeakboardError, MissingExtra
from leakboard.bench.exchange.training import Diverged
from leakboard.bench.exchange.transcripts import read_transcript
from leakboard.bench.records.store import Store
from leakboard.bench.running.engine import Engine
from leakboard.bench.running.reporting import Reporter
from leakboard.bench.running.runner import Runner
from leakboard.defenses.dc import DistanceCorrelation
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP
from leakboard.defenses.sap_cti import SAPCTI

ROUNDING = 1e-5
"""Of losses, and of what is sent, relative to its largest number."""
CANCELLED = 1e-3
"""The same where noise of 30 times a gradient cancels in a sum of float32, by which Adam then divides."""


class Heard(Reporter):
    def __init__(self):
        self.warnings, self.lanes, self.moves = [], {}, set()

    def started(self, planned, lane=0):
        self.lanes[planned.cell.key] = lane

    def moved(self, what, done, total, lane=0):
        self.moves.add(lane)

    def warned(self, message):
        self.warnings.append(message)


class Breaks(NoDefense):
    """Plain fine-tuning in which something happens after some steps."""

    name: ClassVar[str] = "breaks"
    error: ClassVar[BaseException | None] = None

    def fine_tune(self, session):
        fit, steps = session.fit, 0

        def breaking(step, *groups, **how):
            def counted(rows, epoch):
                nonlocal steps
                steps += 1
                if steps == 3 and self.error is not None:
                    raise self.error
                return step(rows, epoch)

            fit(counted, *groups, **how)

        session.fit = breaking
        return super().fine_tune(session)


def go(folder, plan, stack, **fields):
    heard = Heard()
    return Runner(plan, Store(folder), heard, stack=stack, **fields).run(), heard


def same(one, other):
    """Whether two records tell the same, but for the last digits of losses and of drawn points."""
    told, also = one.outcome(), other.outcome()
    assert told.pop("loss") == pytest.approx(also.pop("loss"), rel=ROUNDING)
    for mine, theirs in zip(told["projections"], also["projections"], strict=True):
        apart = np.subtract(mine.pop("points"), theirs.pop("points"))
        assert np.abs(apart).max() <= 1
    return told == also


def close(one, other, rounding):
    """Whether the same was sent, in the same order, but for rounding."""
    assert len(one.messages) == len(other.messages)
    for mine, theirs in zip(one.messages, other.messages, strict=True):
        for name in ("channel", "round", "split", "recipient", "part", "step", "moment"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert np.array_equal(mine.rows, theirs.rows)
        room = rounding * max(1e-3, float(np.abs(mine.values).max(initial=0)))
        assert np.abs(mine.values - theirs.values).max(initial=0) <= room
    return True


@pytest.mark.parametrize(
    ("defense", "cut"),
    [
        (NoDefense(), 0),
        (DistanceCorrelation(), 0),
        (P3EFT(), 0),
        (SAP(), 0),
        (SAP(bottom="trainable"), 0),
        (SAP(bottom="trainable"), 1),
        (SAPCTI(), 0),
    ],
    ids=str,
)
def test_stacked_cells_send_and_end_as_each_by_itself(tmp_path, defense, cut):
    # Other texts, lengths and coins in each seed, and a last batch that is smaller.
    plan = make(defense, seeds=(0, 1, 2), limit=40, cut=cut)
    rounding = CANCELLED if isinstance(defense, P3EFT) else ROUNDING
    alone, _ = go(tmp_path / "alone", plan, 1, transcripts=tmp_path / "a")
    stacked, heard = go(tmp_path / "stacked", plan, 3, transcripts=tmp_path / "s")
    assert heard.warnings == []
    for one, other in zip(alone, stacked, strict=True):
        assert (other.status, other.reason) == ("ok", "")
        assert (one.provenance.stacked, other.provenance.stacked) == (1, 3)
        assert (one.provenance.workers, other.provenance.workers) == (1, 3)
        assert same(one, other)
        sent, too = (read_transcript(tmp_path / name / one.key)[1] for name in "as")
        assert close(sent, too, rounding)


def test_other_defenses_stack_on_each_other_and_the_rest_runs_as_ever(tmp_path):
    plan = make(NoDefense(), Frozen(), SAP(), DistanceCorrelation(weight=0.1))
    alone, _ = go(tmp_path / "alone", plan, 1)
    stacked, heard = go(tmp_path / "stacked", plan, 8)
    assert [record.provenance.stacked for record in stacked] == [3, 1, 3, 3]
    assert [heard.lanes[record.key] for record in stacked] == [0, 0, 1, 2]
    assert heard.moves == {0, 1, 2}
    assert all(map(same, alone, stacked))
    assert alone[1].outcome() == stacked[1].outcome()


def test_cells_of_other_settings_or_cuts_are_not_stacked(tmp_path):
    train = ({"epochs": 1}, {"epochs": 1, "learning_rate": 1e-4})
    plan = make(SAP(), cut=(0, 1))
    plans = [make(SAP(), train=one) for one in train]
    both = replace(plans[0], cells=tuple(cell for one in plans for cell in one.cells))
    for one in (plan, both):
        records, _ = go(tmp_path, one, 2)
        assert [record.provenance.stacked for record in records] == [1, 1]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("broken"), "failed"),
        (Diverged("too far"), "diverged"),
        (torch.OutOfMemoryError("out of memory"), "out-of-memory"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_happens_to_one_cell_happens_to_no_other(tmp_path, monkeypatch, error, status):
    plan = make(NoDefense(), Breaks(), SAP())
    alone, _ = go(tmp_path / "alone", plan, 1)
    monkeypatch.setattr(Breaks, "error", error)
    stacked, heard = go(tmp_path / "stacked", plan, 3)
    assert [record.status for record in stacked] == ["ok", status, "ok"]
    assert str(error) in stacked[1].reason
    assert all(same(alone[i], stacked[i]) for i in (0, 2))
    assert heard.warnings == []


def test_a_cell_that_runs_out_of_memory_in_a_stack_is_tried_by_itself(tmp_path, monkeypatch):
    plan = make(NoDefense(), SAP())
    alone, _ = go(tmp_path / "alone", plan, 1)

    def full(self, gradients):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr("leakboard.bench.backbones.stacked.Pass.backward", full)
    stacked, _ = go(tmp_path / "stacked", plan, 2)
    assert [record.outcome() for record in stacked] == [record.outcome() for record in alone]
    assert {record.provenance.stacked for record in stacked} == {1}


def test_where_no_joint_pass_can_be_made_each_makes_its_own_and_it_is_told(tmp_path, monkeypatch):
    plan = make(NoDefense(), P3EFT(), SAP())
    alone, _ = go(tmp_path / "alone", plan, 1)

    def full(self, parts):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(Stacked, "passed", full)
    stacked, heard = go(tmp_path / "stacked", plan, 3)
    # Each on its thread, with its own random state: to the last digit.
    assert [record.outcome() for record in stacked] == [record.outcome() for record in alone]
    assert len(heard.warnings) == 1
    assert "not stacked any more: OutOfMemoryError: out of memory" in heard.warnings[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MissingExtra("x", "y")])
def test_what_ends_a_run_ends_all_cells_without_a_record_and_it_goes_on(
    tmp_path, monkeypatch, error
):
    plan = make(NoDefense(), Breaks(), SAP())
    alone, _ = go(tmp_path / "alone", plan, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Breaks, "error", error)
        with pytest.raises(type(error)):
            go(tmp_path / "stacked", plan, 3)
    assert [thread.name for thread in threading.enumerate() if thread.name == "cell"] == []
    assert Store(tmp_path / "stacked").read_all() == []
    stacked, _ = go(tmp_path / "stacked", plan, 3)
    assert all(map(same, alone, stacked))


def test_a_cell_that_is_done_is_not_run_again_and_one_that_others_are_at_is_waited_for(tmp_path):
    plan = make(NoDefense(), SAP(), DistanceCorrelation(), SAPCTI())
    store = Store(tmp_path)
    (first, *_), _ = go(tmp_path, replace(plan, cells=plan.cells[:1]), 1)
    held = store.claim(plan.cells[2].cell.key)
    assert held.__enter__()

    class Releases(Heard):
        """Somebody else is at it until the others have their records."""

        def finished(self, record, reused):
            if record.key == plan.cells[3].cell.key:
                held.__exit__(None, None, None)

    records = Runner(plan, store, Releases(), stack=4).run()
    assert records[0] == first
    assert [record.provenance.stacked for record in records] == [1, 2, 1, 2]


def test_a_stack_is_one_process():
    for other in ({"workers": 2}, {"ray": "auto"}):
        with pytest.raises(LeakboardError, match="--stack runs its cells in one process"):
            Engine(stack=2, **other)
    with pytest.raises(LeakboardError, match="workers, attempts and stack"):
        Engine(stack=0)


def test_the_engine_stacks_only_where_it_is_told_to(tmp_path):
    plan = make(NoDefense(), SAP(), train={"epochs": 1})
    for engine, widest in ((Engine(), 1), (Engine(stack=2), 2)):
        records = engine.run(plan, Store(tmp_path / str(widest)), Reporter())
        assert {record.provenance.stacked for record in records} == {widest}
