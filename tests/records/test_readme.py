"""The description of the records names all that is in them."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from boards import seeds
from paths import README

import leakboard.bench.contracts as schema
from leakboard.bench.contracts.threat import Claim
from leakboard.bench.exchange.manifest import Manifest
from leakboard.bench.records.frame import COLUMNS
from leakboard.bench.scoring import NEEDED
from leakboard.bench.scoring.checks import FLAGS
from leakboard.bench.submissions import manifest as submission
from leakboard.leaderboards.tables.leakage import FEWEST_EXACT, Certification
from leakboard.leaderboards.tables.result import BUDGET
from leakboard.leaderboards.tables.results import results_table


def explained(section: str) -> list[str]:
    parts = re.split(r"^###? ", README.read_text("utf-8"), flags=re.MULTILINE)
    text = dict(part.split("\n", 1) for part in parts)[section]
    return re.findall(r"^\| `([^`]+)` \| .*\w", text, flags=re.MULTILINE)


def test_every_export_column_is_explained_in_order() -> None:
    assert explained("Columns of an export") == list(COLUMNS)


def test_every_column_of_the_results_table_is_explained_in_order() -> None:
    (row, *_) = results_table(seeds("none", [0.9], [0.9]))
    assert explained("Columns of the results table") == list(row.row())


def test_certification_and_the_default_budget_are_those_of_the_code() -> None:
    assert explained("Certification") == list(get_args(Certification))
    assert f"It is {BUDGET:g} points everywhere" in README.read_text("utf-8")
    assert f"clearly above {NEEDED:g}" in README.read_text("utf-8")
    assert f"of at least {FEWEST_EXACT} units" in README.read_text("utf-8")


@pytest.mark.parametrize(
    "part",
    [
        schema.Record,
        schema.Cell,
        schema.MethodSpec,
        schema.TrainSettings,
        schema.Recording,
        schema.Plant,
        schema.Estimate,
        schema.Leak,
        schema.Point,
        schema.Projection,
        Claim,
        schema.Cost,
        schema.BottomCost,
        schema.Provenance,
        Manifest,
    ],
)
def test_every_field_of_a_record_is_explained(part: type[schema.Part]) -> None:
    assert explained(part.__name__) == list(part.model_fields)


def test_every_field_of_a_submission_is_explained() -> None:
    assert explained("Submissions") == list(submission.Manifest.model_fields)
    assert explained("Verified") == list(submission.Verified.model_fields)


def test_every_status_and_flag_is_explained() -> None:
    assert explained("Statuses") == list(get_args(schema.Status))
    assert explained("Flags") == list(FLAGS)
