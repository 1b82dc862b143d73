"""The papers' numbers beside ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from boards import CHANCE, cell
from records import leak

from bench.contracts.channels import Channel
from bench.contracts.threat import Goal
from bench.records.store import Store
from leaderboards.tables.beside import beside, shapes, worded
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
    assert row["ep_printed"] == pytest.approx(0.3847)
    assert row["ep"] == pytest.approx(0.6)  # eia-map is not the paper's
    (told,) = worded(rows).to_dict("records")
    assert told["ep printed"] == "0.385"
    assert told["ep here"].startswith("0.600 [")
    assert told["ep apart"] == "+0.215"
    label = [leak(0.7, "kmeans", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    label += [leak(1.0, "spectral", Goal.LABEL, 0.5, channel=Channel.GRADIENTS)]
    label += [leak(0.9, "xgboost", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS)]
    baseline = cell("none", success=None, task="sst2", more=label)
    rows = beside(frame([baseline]), printed("P3EFT", ["later submission table"], "llama-2-7b"))
    (row,) = rows.to_dict("records")
    # Baselines are measured as the paper measures them: its attacks, on activations.
    assert (round(row["ep_printed"], 3), round(row["ep"], 3)) == (0.007, 0.3)


def test_shapes_tell_distance_and_order_and_what_is_clear_of_it():
    def pair(printed, ours, half):
        row = {
            "task": "sst2",
            "goal": "inversion",
            "defense": "sap",
            "setting": "",
            "measured on": "",
        }
        ends = {"utility": 0.9, "utility_low": 0.8, "utility_high": 1.0, "utility_printed": np.nan}
        ends |= {"ep": ours, "ep_low": ours - half, "ep_high": ours + half, "ep_printed": printed}
        return row | ends | {"printed for": "SAP, Table 3, roberta-large"}

    pairs = [
        pair(0.5, 0.7, 0.01),
        pair(0.3, 0.4, 0.01),
        pair(0.2, 0.405, 0.01),
        pair(0.1, 0.9, 0.01),
    ]
    (line,) = shapes(pd.DataFrame(pairs))
    assert line == (
        "sst2, EP against inversion (SAP, Table 3, roberta-large): ours less printed is +0.100 to +0.800 at "
        "4 settings; of 6 pairs of settings 2 stand in the printed order (2 with intervals apart) and 4 in the "
        "other (3 with intervals apart)"
    )


def test_the_command_lays_ours_beside_the_papers(tmp_path, leakboard, monkeypatch):
    store = Store(tmp_path / "sap-figure4")
    store.write(
        cell("sap", success=0.4, params={"eta": 50.0, "bottom": "frozen"}, cut=4, task="sst2")
    )
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = leakboard("board", str(store.folder), "--question", "papers")
    assert code == 0
    assert "0.385" in out
    assert "0.600" in out
