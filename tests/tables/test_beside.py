"""The papers' numbers beside ours."""

from __future__ import annotations

import pytest
from boards import CHANCE, cell
from records import leak

from bench.contracts.channels import Channel
from bench.contracts.threat import Goal
from bench.records.store import Store
from leaderboards.tables.beside import beside
from leaderboards.tables.frame import frame
from leaderboards.tables.printed import printed

pytestmark = pytest.mark.usefixtures("certified")


def test_papers_numbers_stand_beside_what_their_own_attacks_found_here():
    stated = {"eta": 50.0, "bottom": "frozen"}
    stronger = leak(0.9, "eia-map", chance=CHANCE)
    ours = cell("sap", success=0.4, params=stated, cut=4, task="sst2", more=[stronger])
    other = cell("sap", success=0.3, params=stated, cut=3, task="sst2")
    rows = beside(frame([ours, other]), printed("SAP", ["Table 4"]))
    (row,) = rows.to_dict("records")
    assert row["setting"] == "η = 50, cut 4"
    assert row["ep printed"] == "0.385"
    assert row["ep here"].startswith("0.600")  # eia-map is not the paper's
    label = [leak(0.7, "kmeans", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    label += [leak(1.0, "spectral", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)]
    label += [leak(0.9, "xgboost", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    baseline = cell("none", success=None, task="sst2", more=label)
    rows = beside(frame([baseline]), printed("P3EFT", ["later submission table"], "llama-2-7b"))
    (row,) = rows.to_dict("records")
    # Baselines are measured as the paper measures them: its attacks, on activations.
    assert (row["ep printed"], row["ep here"][:5]) == ("0.007", "0.300")


def test_the_command_lays_ours_beside_the_papers(tmp_path, leakboard, monkeypatch):
    store = Store(tmp_path / "sap-table4")
    store.write(
        cell("sap", success=0.4, params={"eta": 50.0, "bottom": "frozen"}, cut=4, task="sst2")
    )
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = leakboard("board", str(store.folder), "--question", "papers")
    assert code == 0
    assert "0.385" in out
    assert "0.600" in out
