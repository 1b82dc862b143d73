"""The figure of exposure: each sign stands where the records have it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from records import leak, record
from typer.testing import CliRunner

from leakboard.bench.cli import app
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.record import Estimate, Leak, Record
from leakboard.bench.contracts.threat import Claim, Goal
from leakboard.bench.records.store import Store
from leakboard.bench.suites.suite import Printed, load_suite
from leakboard.bench.tasks.planting import CEILING
from leakboard.leaderboards.figures.kinds.memory import memory
from leakboard.leaderboards.rendering.plot import Panel
from leakboard.leaderboards.tables.printed import mirrored_points
from leakboard.leaderboards.tables.results import results_table


def exposed(bits: float, view: str, n: int = 1, half: float = 0.0) -> Leak:
    low, high = (bits - half, bits + half) if n > 1 else (0.0, CEILING)
    return leak(0.5, "canary-exposure", Goal.MEMORISATION).model_copy(
        update={
            "metric": "exposure",
            "view": view,
            "ceiling": CEILING,
            "success": Estimate(value=bits, low=low, high=high, n=n, chance=1.443),
        }
    )


def remembered(defense: str, ten: float, params: dict[str, Any], **fields: Any) -> Record:
    leaks = [exposed(ten, "planted 10 times"), exposed(1.4, "never planted", 100, 0.3)]
    return record(defense, params, leaks=leaks, task="wikitext2", **fields)


PAPER = Printed(paper="JFT", artefact=["released result files"])
JFT = {"phase1": "direct", "detector": "high-entity", "epsilon": 3.0}
RECORDS = [
    remembered("none", 12.0, {}, undefended=True),
    *(
        remembered(
            "jft",
            bits,
            JFT | {"canaries": canaries},
            claim=Claim(guarantee="dp", parameters={"epsilon": 3.0}, covers="texts"),
        )
        for bits, canaries in ((2.0, "masked"), (5.0, "missed"))
    ),
]


def drawn(records: list[Record], printed: pd.DataFrame | None = None) -> Panel:
    """The only panel."""
    (panel,) = memory(results_table(records), printed).panels
    return panel


def signs(panel: Panel, marker: str, hollow: bool = False) -> list[tuple[float, int]]:
    """Value and row of each sign."""
    found = (one for one in panel.series if (one.marker, one.hollow) == (marker, hollow))
    return [(point.x.value, round(point.y.value)) for one in found for point in one.points]


def names(panel: Panel) -> list[str]:
    return [text for _, text in panel.y.ticks or ()]


def test_each_setting_has_its_row_with_its_value_and_its_claim():
    ax = drawn(RECORDS)
    assert signs(ax, "o") == [(12.0, 0), (2.0, 1), (5.0, 2)]
    assert signs(ax, "|") == [(1.4, 0), (1.4, 1), (1.4, 2)]
    assert names(ax) == ["No protection", "JFT, masked\nclaims ε = 3", "JFT, missed\nclaims ε = 3"]


def test_models_that_differ_in_copies_share_a_row_and_what_training_added_is_drawn():
    def planted(copies: int, bits: float) -> Record:
        own = remembered("none", 12.0, {}, undefended=True)
        leaks = [exposed(bits, f"planted {copies} times", 10, 1.0), *own.leaks]
        leaks[0] = leaks[0].model_copy(update={"metric": "exposure gained"})
        plant = Plant(canaries=("{digits}",), copies=(copies,))
        cell = own.cell.model_copy(update={"plant": plant})
        return own.model_copy(update={"leaks": leaks, "cell": cell, "key": cell.key})

    ax = drawn([planted(10, 9.0), planted(100, 18.0)])
    assert (signs(ax, "o"), signs(ax, "s")) == ([(9.0, 0)], [(18.0, 0)])
    assert ax.x.label == "← exposure gained by training, bits"


def test_rows_of_one_defense_that_was_trained_in_two_ways_say_how():
    plain = remembered("none", 12.0, {}, undefended=True)
    train = plain.cell.train.model_copy(update={"learning_rate": 5e-3, "batch_size": 37})
    cell = plain.cell.model_copy(update={"train": train})
    labels = names(
        drawn([plain, plain.model_copy(update={"cell": cell, "key": cell.key}), RECORDS[1]])
    )
    assert labels == [
        "No protection\nbatch size = 32, learning rate = 0.001",
        "No protection\nbatch size = 37, learning rate = 0.005",
        "JFT\nclaims ε = 3",
    ]


def test_rows_stand_by_what_their_detectors_mask_and_name_them():
    def own(defense: str, detector: str, **params: Any) -> Record:
        return remembered(defense, 2.0, {"detector": detector, "miss_rate": None, **params})

    rows = [
        own("redacted", "low-contextual", canaries="missed"),
        own("redacted", "patterns", canaries="missed"),
        own("redacted", "patterns", canaries="masked"),
        own("jft", "high-entity", epsilon=3.0, phase1="direct"),
        own("jft", "high-entity", epsilon=3.0, phase1="light-noise"),
        remembered(
            "jft",
            1.0,
            {"detector": "high-entity", "miss_rate": 0.3, "epsilon": 3.0, "phase1": "light-noise"},
        ),
    ]
    labels = names(drawn(rows))
    assert labels == [
        "Redaction, masked, patterns",
        "Redaction, missed, patterns",
        "Redaction, missed, low-contextual",
        "JFT, direct",
        "JFT, light-noise",
        "JFT, miss rate = 0.3, light-noise",
    ]


def test_intervals_of_means_are_inside_the_axes():
    def gained(seed: int, bits: float) -> Record:
        own = remembered("none", 12.0, {}, undefended=True, seed=seed)
        leaks = [
            exposed(bits, "planted 10 times", 10, 0.1).model_copy(
                update={"metric": "exposure gained"}
            )
        ]
        return own.model_copy(update={"leaks": leaks})

    ax = drawn([gained(0, 3.0), gained(1, 4.0), gained(2, 9.0)])
    least = min(point.x.low for one in ax.series for point in one.points)
    assert least < -1
    assert ax.x.low is not None
    assert ax.x.low <= least


def test_a_single_canary_has_no_interval_and_a_hundred_have():
    ends = {one.marker: one.points[0].x.ends for one in drawn(RECORDS[:1]).series}
    assert ends == {"o": (12.0, 12.0, 12.0), "|": pytest.approx((1.4, 1.1, 1.7))}


def test_models_of_attackers_are_not_drawn_nor_counted():
    cell = RECORDS[0].cell.model_copy(update={"shadow": 0, "plant": Plant(audit=4)})
    shadow = RECORDS[0].model_copy(update={"cell": cell, "key": cell.key})
    assert len(signs(drawn([*RECORDS, shadow]), "o")) == 3


def test_printed_numbers_stand_in_the_rows_that_agree_with_all_they_state():
    theirs = mirrored_points(PAPER)
    assert signs(drawn(RECORDS, theirs), "o", hollow=True) == [(8.03, 0), (0.55, 1), (2.79, 2)]
    assert "printed by JFT for gpt2" in memory(results_table(RECORDS), theirs).caption


def test_what_is_not_certified_says_so():
    # An attack that finds hardly more where nothing is protected.
    blind = [remembered("none", 3.0, {}, undefended=True), remembered("dpsgd", 2.0, {})]
    ax = drawn(blind)
    assert ax.remark == "not certified"


def test_the_suite_of_the_paper_names_its_numbers():
    paper = load_suite("jft-wikitext2").paper
    assert paper is not None
    assert len(mirrored_points(paper).dropna(subset=["exposure", "perplexity"])) == 8


def test_records_without_exposures_are_refused_with_the_way_to_get_some():
    with pytest.raises(LeakboardError, match=r"plant canaries"):
        memory(results_table([record()]))


def test_the_command_draws_the_same_file_twice(tmp_path):
    store = Store(tmp_path / "mine")
    for one in RECORDS:
        store.write(one)
    files = []
    for folder in ("a", "b"):
        said = CliRunner().invoke(
            app, ["plot", "memory", str(tmp_path / "mine"), "--out", str(tmp_path / folder)]
        )
        assert said.exit_code == 0, said.output
        files.append((tmp_path / folder / "mine-memory.png").read_bytes())
    assert files[0] == files[1]


def test_printed_exposures_are_no_shares():
    rows: pd.DataFrame = mirrored_points(PAPER)
    assert rows["exposure"].between(0, CEILING).all()
    assert rows["exposure"].max() > 1
