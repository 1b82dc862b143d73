"""What a run shows of its cells while they run."""

from __future__ import annotations

import io

import pytest
from cells import make, run
from rich.console import Console

from leakboard.bench.running import reporting
from leakboard.bench.running.reporting import PARTS, Live, Reporter
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP


@pytest.fixture
def clock(monkeypatch):
    """The seconds that have passed, as the bars see them."""
    now = [100.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def live():
    """Bars of four cells."""
    return Live(Console(file=io.StringIO(), width=200), 4)


def test_the_time_left_is_reckoned_from_the_first_parts_of_the_first_cell_on(live, clock):
    (cell,) = make(NoDefense()).cells
    assert live.left() == ""
    live.started(cell)
    assert live.left() == ""  # nothing is done
    clock[0] += 60
    live.moved("fine-tuning", 1, 2)
    tuned = PARTS["fine-tuning"][1] / 2
    rest = 60 * (4 - tuned) / tuned
    assert live.left() == f"left 0:{rest // 60:02.0f}:{rest % 60:02.0f}"
    live.moved("attacking: eia-nn", 1, 2)
    assert live.parts[0] == pytest.approx(sum(PARTS["attacking"]) / 2)


def test_cells_that_were_there_take_no_time(live, clock, tmp_path):
    first, second = make(NoDefense(), seeds=(0, 1)).cells
    records = run(tmp_path, NoDefense(), seeds=(0, 1))
    live.started(first)
    live.finished(records[0], reused=True)
    live.started(second)
    clock[0] += 50
    live.moved("attacking", 2, 2)
    live.finished(records[1], reused=False)
    assert live.left() == "left 0:01:40"  # two of three took nothing yet
    told = live.console.file.getvalue()
    assert "already done reviews seed 0 none" in told
    assert "GB" in told.splitlines()[1]


def test_cells_of_two_cuts_are_told_apart(live):
    at_words, behind_a_block = make(SAP(), cut=(0, 1)).cells
    live.started(at_words)
    live.started(behind_a_block)
    assert sorted(live.names.values()) == [
        "reviews seed 0 sap",
        "reviews, cut 1, seed 0 sap",
    ]


def test_attacks_are_told_by_name_while_they_run():
    (cell,) = make(NoDefense()).cells
    heard = []

    class Heard(Reporter):
        def moved(self, what, done, total, lane=0):
            heard.append((what, done))

    names = [pairing.attack.name for pairing in cell.pairings]
    for at, _ in enumerate(Heard().track("attacking", cell.pairings, len(names))):
        assert heard[-1] == (f"attacking: {names[at]}", at)
    assert heard[-1] == ("attacking", len(names))
