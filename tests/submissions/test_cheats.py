"""Methods that cheat while a submission is run again: refused, with what they did."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from bypassing import keep_a_trace
from cells import make

from leakboard.bench.contracts.record import Record
from leakboard.bench.methods import registry
from leakboard.bench.methods.method import Source
from leakboard.bench.records.store import from_bytes, to_text
from leakboard.bench.running import attacks, context_of, run_cell
from leakboard.bench.submissions.cell_process import Order, _work
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
        if self.mode == "beside":
            keep_a_trace(session.wire)
        return super().fine_tune(session)


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


def run_again(plan, mode="honest", swapped=0.0) -> tuple[str, str] | Record:
    """How another run of the cell ended: an event with its reason, or the record."""
    target = next(planned for planned in plan.cells if planned.defense.name == "mine")
    record = run_cell(context_of(plan, target))
    Mine.mode = mode
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
    events = Pipe()
    _work(events, order)
    event = next(event for event in events if event[0] in ("record", "not run", "misbehaved"))
    return from_bytes(event[2], event[1], "it") if event[0] == "record" else event


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


@pytest.mark.parametrize("mode", ["honest", "beside"])
def test_training_beside_the_wire_is_noticed_by_swapped_messages(mine, plan, mode):
    mine.mode = mode
    ordinary = run_again(plan, mode)
    assert ordinary.status == "ok", ordinary.reason
    swapped = run_again(plan, mode, swapped=0.5)
    assert swapped.wire_check, swapped.reason
    outcome, what = swap_outcome(ordinary, swapped)
    assert (outcome == "refused") == (mode == "beside"), what
