"""Numbers that papers print."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.tables.printed import (
    AS_PRINTED,
    MEASURES,
    TABLE,
    artefacts,
    printed_points,
)

pytestmark = pytest.mark.usefixtures("few_methods")


def test_a_printed_point_has_both_numbers_as_shares() -> None:
    found = printed_points("SAP", ["Table 3"], "roberta-large")
    assert len(found) == 12
    first = found.iloc[0]
    assert first["params"] == '{"bottom": "frozen", "eta": 45, "split": 0}'
    assert (first["ep"], first["utility"]) == pytest.approx((0.5077, 0.8075))


def test_a_number_that_the_paper_does_not_print_is_missing() -> None:
    found = printed_points("SAP", ["Table 2", "Section 5.2"])
    assert found[found["defense"] == "none"]["ep"].isna().all()
    assert found[found["defense"] == "sap-cti"]["ep"].tolist() == pytest.approx([0.3829])
    assert found[found["defense"] == "sap-cti"]["utility"].tolist() == pytest.approx([0.9508])


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (("SAPP", ["Table 3"], None), "SAP"),
        (("SAP", ["Table 9"], None), "Table 4"),
        (("SAP", ["Table 3"], "gpt2"), "roberta-large"),
    ],
)
def test_an_unknown_name_is_told_the_known_ones(
    asked: tuple[str, list[str], str | None], hint: str
) -> None:
    with pytest.raises(LeakboardError, match=hint):
        printed_points(*asked)


def test_no_printed_share_is_above_one() -> None:
    table = pd.read_csv(TABLE)
    for paper, rows in table[~table["metric"].isin(AS_PRINTED)].groupby("paper"):
        numbers = printed_points(paper, list(rows["artefact"].unique()))[
            ["utility", "ep"]
        ].to_numpy()
        assert np.nanmax(numbers) <= 1
        assert np.nanmin(numbers) >= 0


def test_every_printed_number_is_read_as_some_measure() -> None:
    table = pd.read_csv(TABLE)
    found = pd.concat([printed_points(paper, [artefact]) for paper, artefact in artefacts()])
    assert found[[*MEASURES]].notna().sum().sum() == len(table)


def test_perplexities_and_exposures_stand_as_they_are_printed_in_one_row() -> None:
    rows = printed_points("JFT", ["released result files"]).set_index(["defense", "params"])
    assert rows["perplexity"].tolist() == [20.08, 26.18, 27.35, 23.91, 23.91, 22.72, 22.73, 24.64]
    assert rows["exposure"].tolist() == [8.03, 1.36, 1.96, 0.34, 5.6, 0.55, 2.79, 0.75]


def test_printed_label_leak_is_read_as_ep_of_the_label_goal() -> None:
    rows = printed_points("P3EFT", ["later submission table"], "deberta-v2-xxlarge")
    row = rows[(rows["task"] == "sst2") & (rows["defense"] == "p3eft")].iloc[0]
    assert (row["goal"], row["utility"]) == ("label", pytest.approx(0.965))
    assert row["ep"] == pytest.approx(1 - 0.626)
