"""Methods that cheat while a submission is run again: refused, with what they did."""

from __future__ import annotations

import io
import os
import pickle
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from bypassing import keep_a_trace
from cells import make

from leakboard.bench.contracts.record import Record
from leakboard.bench.methods import registry
from leakboard.bench.methods.method import Source
from leakboard.bench.records import compare_runs
from leakboard.bench.records.store import from_bytes, to_text
from leakboard.bench.running import attacks, context_of, run_cell
from leakboard.bench.submissions.cell_process import _work
from leakboard.bench.submissions.judge import Inconsistent, Judge, Order
from leakboard.bench.submissions.rerunning import swap_outcome
from leakboard.defenses.none import NoDefense


class Mine(NoDefense):
    """Fine-tunes without protection, and does something else in between."""

    name: ClassVar[str] = "mine"
    source: ClassVar[Source] = Source("a test")
    file: ClassVar[Path]
    mode: ClassVar[str] = "honest"

    def fine_tune(self, session):
        with suppress(OSError):
            if self.mode == "writes":
                self.file.write_text("{}")
            elif self.mode == "reads":
                self.file.read_text()
            elif self.mode == "runs":
                os.system("true")
        if self.mode == "replaces":
            attacks.score = lambda guess, truth, labelled: {}
        # `check` swaps the messages of all steps, cells that are run again those of some.
        if self.mode == "beside" or (self.mode == "unless-checked" and session.wire._share < 1):
            keep_a_trace(session.wire)
        tuned = super().fine_tune(session)
        if self.mode == "peeks":
            labels = labels_of_the_harness("dev")
            tuned.predict = lambda tokens, split: torch.eye(session.classes)[labels]
        return tuned


def labels_of_the_harness(split):
    """Labels of a split, as the frames that run this cell hold them."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_code.co_name == "_run" and "context" in frame.f_locals:
            return frame.f_locals["context"].inputs.task.splits[split].labels
    raise LookupError


@pytest.fixture(scope="module")
def plan():
    return make(Mine(), attacks=[], limit=128)


@pytest.fixture
def mine(monkeypatch, tmp_path):
    known = registry.defenses() | {"mine": Mine}
    monkeypatch.setattr(registry, "defenses", lambda: known)
    monkeypatch.setattr(attacks, "score", attacks.score)  # as it was, after the test
    monkeypatch.setattr(Mine, "mode", "honest")
    Mine.file = tmp_path / "data" / "labels.tsv"
    Mine.file.parent.mkdir()
    Mine.file.write_text("0\n1\n")
    monkeypatch.setenv("LEAKBOARD_DATA", str(Mine.file.parent))
    return Mine


class Pipe(list):
    """Keeps the events that a process would send."""

    def send(self, event):
        self.append(event)


def order_of(plan, mode="honest", swapped=0.0):
    """The order to run the cell of the method again, and its record in a run of its own."""
    target = next(planned for planned in plan.cells if planned.defense.name == "mine")
    Mine.mode = mode
    record = run_cell(context_of(plan, target))
    order = Order(
        key=record.key,
        record=to_text(record).encode(),
        shadows={},
        data=None,
        device="cpu",
        model="tiny-bert",
        threads=torch.get_num_threads(),
        swapped=swapped,
    )
    return order, record


def run_again(plan, mode="honest", swapped=0.0, before="honest") -> tuple[str, str] | Record:
    """How another run of the cell ended: an event with its reason, or the record.

    Args:
        before: what the method did in the run that is stated.
    """
    order, _ = order_of(plan, before, swapped)
    Mine.mode = mode
    judge, events = Judge(order), Pipe()
    _work(events, order, pickle.dumps(judge.given()))
    event = next(event for event in events if event[0] in ("result", "not run", "misbehaved"))
    if event[0] != "result":
        return event
    _, key, text, scores = event
    return judge.scored(from_bytes(text.encode(), key, "it"), scores)


def test_an_honest_method_is_run_again(mine, plan):
    assert run_again(plan).status == "ok"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("writes", "writes {file}"),
        ("reads", "reads {file}"),
        ("runs", "starts true"),
        ("replaces", "replaces leakboard.bench.running.attacks.score"),
    ],
)
def test_what_it_does_besides_is_refused_and_named(mine, plan, mode, reason):
    assert run_again(plan, mode) == ("misbehaved", reason.format(file=mine.file))
    assert mine.file.read_text() == "0\n1\n"


@pytest.mark.parametrize("mode", ["honest", "beside", "unless-checked"])
def test_training_beside_the_wire_is_noticed_by_swapped_messages(mine, plan, mode):
    mine.mode = mode
    ordinary = run_again(plan, mode)
    assert ordinary.status == "ok", ordinary.reason
    swapped = run_again(plan, mode, swapped=0.5)
    assert swapped.wire_check, swapped.reason
    outcome, what = swap_outcome(ordinary, swapped)
    assert (outcome == "refused") == (mode != "honest"), what


def test_labels_of_the_evaluated_split_are_not_in_the_process_of_a_method(mine, plan):
    _, stated = order_of(plan, "peeks")
    assert stated.utility.value == 1
    again = run_again(plan, "peeks", before="peeks")
    assert again.utility.value < 0.7
    assert again.predictions["truth"] == stated.predictions["truth"]
    outcome, what = compare_runs(stated, again)
    assert outcome == "refused", what
    assert "utility" in what


def test_nothing_that_a_method_is_given_depends_on_these_labels(mine, plan, monkeypatch):
    order, _ = order_of(plan)
    judge = Judge(order)
    other = Judge(order)
    flipped = replace(judge.split, labels=1 - judge.split.labels)
    splits = {**judge.plants.task.splits, "dev": flipped}
    other.plants = replace(judge.plants, task=replace(judge.plants.task, splits=splits))
    other.split = flipped
    theirs = {
        **judge.task.splits,
        "dev": replace(judge.task.split("dev"), labels=1 - judge.task.split("dev").labels),
    }
    other.task = replace(judge.task, splits=theirs)
    vars(other.task)["hash"] = judge.task.hash
    assert unshared(other.given()) == unshared(judge.given())


def unshared(value):
    """Its pickle, in which an object that is there twice is written twice."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    pickler.fast = True
    pickler.dump(value)
    return written.getvalue()


def test_scores_that_do_not_follow_from_guesses_are_named(real):
    order = Order(real[1].key, to_text(real[1]).encode(), {}, None, "cpu", "tiny-bert", 1)
    judge = Judge(order)
    predicted = torch.eye(2)[torch.tensor(real[1].predictions["predicted"])].tolist()
    assert judge.scored(real[1], predicted).utility == real[1].utility
    leaks = [
        leak.model_copy(update={"success": leak.success.model_copy(update={"value": 0.01})})
        if leak.attack.name == "eia-nn" and leak.success
        else leak
        for leak in real[1].leaks
    ]
    with pytest.raises(Inconsistent, match=r"eia-nn .* is stated as 0\.01"):
        judge.scored(real[1].model_copy(update={"leaks": leaks}), predicted)
