"""Claims that papers make, as data."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from paths import ROOT
from pydantic import TypeAdapter, ValidationError

from leakboard.bench.contracts import LeakboardError
from leakboard.bench.methods.registry import attacks, defenses
from leakboard.bench.tasks import known_task
from leakboard.leaderboards.tables.claims import PrintedClaim, printed_claims
from leakboard.leaderboards.tables.compare import Rows
from leakboard.leaderboards.tables.printed import TABLE as PRINTED

CLAIMS = printed_claims()
each_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


def test_there_are_at_least_thirty_claims_of_every_paper() -> None:
    assert len(CLAIMS) >= 30
    assert {claim.paper for claim in CLAIMS} == {"SAP", "P3EFT", "RAPT", "JFT"}
    assert min(Counter(claim.paper for claim in CLAIMS).values()) >= 10


def test_numbers_that_papers_published_apart_from_their_text_are_claims_too() -> None:
    for artefact in ("later submission table", "released result files"):
        assert sum(artefact in claim.where for claim in CLAIMS) >= 5


@each_claim
def test_a_claim_names_its_place_and_reads_as_one_short_sentence(claim: PrintedClaim) -> None:
    assert claim.where.startswith(("Section", "Abstract", "later submission table"))
    assert any(digit.isdigit() for digit in claim.where)
    assert claim.claim.endswith(".")
    assert len(claim.claim.split()) <= 25


@each_claim
def test_a_claim_names_defenses_values_attacks_and_tasks_that_exist(claim: PrintedClaim) -> None:
    for task in claim.task:
        known_task(task)
    assert set(claim.attacks) <= attacks().keys()
    for selector in (claim.a, claim.b):
        defense = defenses()[selector.defense]
        assert selector.params.keys() <= defense.model_fields.keys()
        for name, values in selector.params.items():
            for value in values if isinstance(values, tuple) else (values,):
                defense.model_validate({name: value})


@each_claim
def test_settings_are_paired_by_parameters_that_both_have(claim: PrintedClaim) -> None:
    names = set(claim.pair_by) - {"cut"}
    for selector in (claim.a, claim.b):
        assert names <= defenses()[selector.defense].model_fields.keys()


def test_claims_of_one_group_compare_the_same_settings() -> None:
    groups: dict[str, list[PrintedClaim]] = defaultdict(list)
    for claim in CLAIMS:
        if claim.group:
            groups[claim.group].append(claim)
    for name, members in groups.items():
        assert len(members) > 1, name
        assert len({(claim.paper, claim.a.defense, claim.b.defense) for claim in members}) == 1, (
            name
        )


def published_settings() -> list[dict[str, Any]]:
    """Task, model, cut, defense, parameters and folder of each published record."""
    rows = []
    for path in sorted((ROOT / "results" / "published").glob("*/*.json")):
        row: dict[str, Any] = {"folder": path.parent.name}
        with path.open(encoding="utf-8") as file:
            for line in file:  # predictions, further down, are long
                if line.startswith('"cell": '):
                    cell = json.loads(line.removeprefix('"cell": ').rstrip().removesuffix(","))
                    row |= {name: cell[name] for name in ("task", "model", "cut", "shadow")}
                    row |= {"defense": cell["defense"]["name"], "params": cell["defense"]["params"]}
                if line.startswith('"undefended": '):
                    row["undefended"] = "true" in line
                    break
        if row.get("shadow") is None:
            rows.append(row)
    unique = {json.dumps(row, sort_keys=True): row for row in rows}
    return list(unique.values())


@pytest.fixture(scope="module")
def settings() -> list[dict[str, Any]]:
    return published_settings()


@each_claim
def test_published_records_hold_pairs_for_every_task_or_the_claim_says_what_is_missing(
    claim: PrintedClaim, settings: list[dict[str, Any]]
) -> None:
    a = [row for row in settings if matches(claim.a, row)]
    b = [row for row in settings if matches(claim.b, row)]
    measured = {
        one["task"]
        for one in a
        for other in b
        if one["folder"] == other["folder"] and _is_pair(claim, one, other)
    }
    missing = set(claim.task) - measured
    assert measured
    assert bool(missing) == ("not measured" in claim.note), missing


@pytest.mark.parametrize(
    ("id", "artefact", "metric", "a", "b"),
    [
        ("sap-hides-text-fp", "Section 5.2", "ep_inversion", ("sap", "eta=50"), None),
        ("sap-cti-gains-fp", "Section 5.2", "accuracy", ("sap-cti", ""), ("sap", "")),
        ("sap-cti-hides-as-much-fp", "Section 5.2", "ep_inversion", ("sap-cti", ""), ("sap", "")),
        (
            "sap-trainable-leaks-more",
            "Table 3",
            "ep_inversion",
            ("sap", "eta=45;split=0;bottom=trainable"),
            ("sap", "eta=45;split=0;bottom=frozen"),
        ),
        (
            "sap-trainable-same-utility",
            "Table 3",
            "accuracy",
            ("sap", "eta=45;split=0;bottom=trainable"),
            ("sap", "eta=45;split=0;bottom=frozen"),
        ),
        ("sap-depth-hides-text", "Table 4", "ep_inversion", ("sap", "eta=none;split=8"), None),
        (
            "sap-deeper-hides-more",
            "Table 4",
            "ep_inversion",
            ("sap", "eta=none;split=8"),
            ("sap", "eta=none;split=4"),
        ),
        (
            "sap-noise-behind-blocks-hides",
            "Table 4",
            "ep_inversion",
            ("sap", "eta=25;split=6"),
            ("sap", "eta=none;split=6"),
        ),
        (
            "sap-noise-behind-blocks-costs",
            "Table 4",
            "accuracy",
            ("sap", "eta=25;split=6"),
            ("sap", "eta=none;split=6"),
        ),
        ("frozen-costs-utility", "later", "accuracy", ("frozen", ""), ("none", "")),
        ("frozen-hides-labels", "later", "leak", ("frozen", ""), ("none", "")),
        ("p3eft-later-sst2-labels", "later", "leak", ("p3eft", ""), ("none", "")),
        ("p3eft-later-sst2-utility", "later", "accuracy", ("p3eft", ""), ("none", "")),
        ("p3eft-later-qnli-labels", "later", "leak", ("p3eft", ""), ("none", "")),
        ("p3eft-later-qnli-utility", "later", "accuracy", ("p3eft", ""), ("none", "")),
        ("p3eft-later-mnli-labels", "later", "leak", ("p3eft", ""), ("none", "")),
        ("p3eft-later-mnli-utility", "later", "accuracy", ("p3eft", ""), ("none", "")),
        ("p3eft-later-dc-labels", "later", "leak", ("p3eft", ""), ("dc", "")),
        ("p3eft-later-dc-utility", "later", "accuracy", ("p3eft", ""), ("dc", "")),
        ("dpsgd-hides-canaries", "files", "exposure", ("dpsgd", ""), ("none", "")),
        ("dpsgd-costs-perplexity", "files", "perplexity", ("dpsgd", ""), ("none", "")),
        ("redacted-hides-masked", "files", "exposure", ("redacted", "masked"), ("none", "")),
        ("redacted-leaks-missed", "files", "exposure", ("redacted", "miss"), ("redacted", "mask")),
        ("jft-hides-masked", "files", "exposure", ("jft", "masked"), ("none", "")),
        ("jft-costs-perplexity", "files", "perplexity", ("jft", "masked"), ("none", "")),
        (
            "jft-beats-redacted-perplexity",
            "files",
            "perplexity",
            ("jft", "masked"),
            ("redacted", "masked"),
        ),
        ("jft-beats-dpsgd-perplexity", "files", "perplexity", ("jft", "masked"), ("dpsgd", "")),
        (
            "jft-beats-redacted-missed",
            "files",
            "exposure",
            ("jft", "missed;phase1=direct"),
            ("redacted", "missed"),
        ),
        (
            "jft-light-noise-hides-missed",
            "files",
            "exposure",
            ("jft", "light-noise"),
            ("jft", "missed;phase1=direct"),
        ),
        (
            "jft-light-noise-costs-perplexity",
            "files",
            "perplexity",
            ("jft", "light-noise"),
            ("jft", "missed;phase1=direct"),
        ),
        (
            "jft-light-noise-beats-crt-exposure",
            "files",
            "exposure",
            ("jft", "light-noise"),
            ("crt", ""),
        ),
        (
            "jft-light-noise-beats-crt-perplexity",
            "files",
            "perplexity",
            ("jft", "light-noise"),
            ("crt", ""),
        ),
        ("crt-perplexity-above-dpsgd", "files", "perplexity", ("crt", ""), ("dpsgd", "")),
    ],
)
def test_a_size_is_the_difference_of_two_printed_numbers(
    id: str, artefact: str, metric: str, a: tuple[str, str], b: tuple[str, str] | None
) -> None:
    claim = next(one for one in CLAIMS if one.id == id)
    table = pd.read_csv(PRINTED, keep_default_na=False, dtype={"value": float})
    table = table[
        (table["paper"] == claim.paper)
        & table["artefact"].str.contains(artefact)
        & (table["metric"] == metric)
        & table["task"].isin(claim.task)
        & table["model"].isin(["roberta-large", "deberta-v2-xxlarge", "gpt2"])
    ]

    def value(defense: str, params: str) -> float:
        chosen = table[(table["defense"] == defense) & table["params"].str.contains(params)]
        return float(chosen["value"].item())

    difference = value(*a) - (value(*b) if b else 0)
    scale = {"ep_inversion": -100, "leak": 100}.get(metric, 1)
    assert claim.size == pytest.approx(difference / scale, abs=1e-9)


def matches(selector: Rows, row: Mapping[str, Any]) -> bool:
    params = row["params"]
    params = json.loads(params) if isinstance(params, str) else params
    return selector.matches(row["defense"], params, row["cut"], bool(row["undefended"]))


def row(**changes: Any) -> dict[str, Any]:
    params = {"eta": 75.0, "bottom": "frozen", "bottom_learning_rate": 1e-5}
    setting = {"task": "sst2", "model": "minilm", "cut": 0, "defense": "sap", "undefended": False}
    return setting | {"params": json.dumps(params | changes.pop("params", {}))} | changes


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"defense": "sap"}, True),
        ({"defense": "sap-cti"}, False),
        ({"defense": "sap", "params": {"eta": 75}}, True),
        ({"defense": "sap", "params": {"eta": [60, 75]}}, True),
        ({"defense": "sap", "params": {"eta": [60, 90]}}, False),
        ({"defense": "sap", "params": {"eta": None}}, False),
        ({"defense": "sap", "params": {"eta": 75, "bottom": "trainable"}}, False),
        ({"defense": "sap", "params": {"share": None}}, False),
        ({"defense": "sap", "cut": 0}, True),
        ({"defense": "sap", "cut": [3, 5]}, False),
        ({"defense": "sap", "undefended": False}, True),
        ({"defense": "sap", "undefended": True}, False),
    ],
)
def test_a_selector_matches_what_it_names_and_leaves_the_rest_free(
    selector: dict[str, Any], expected: bool
) -> None:
    assert matches(TypeAdapter(Rows).validate_python(selector), row()) is expected


def test_true_is_not_taken_for_one() -> None:
    selector = Rows("rapt", {"reconstruction": True})
    assert matches(selector, row(defense="rapt", params={"reconstruction": True}))
    assert not matches(selector, row(defense="rapt", params={"reconstruction": 1}))


def example(**changes: Any) -> dict[str, Any]:
    claim = {
        "id": "noise-costs",
        "paper": "SAP",
        "where": "Section 5.2",
        "claim": "Noise costs accuracy.",
        "metric": "utility",
        "task": ["sst2"],
        "a": {"defense": "sap", "params": {"bottom": "trainable"}},
        "b": {"defense": "sap", "params": {"bottom": "frozen"}},
        "pair_by": ["eta"],
        "expect": "less",
    }
    return claim | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "accuracy"}, "metric: Input should be 'utility', 'success'"),
        ({"metric": "success"}, "goal: the metric 'success' needs a goal"),
        ({"goal": "label"}, "goal: the metric 'utility' has no goal"),
        ({"attacks": ["eia-nn"]}, "attacks: the metric 'utility' has no attacks"),
        ({"worst": True}, "attacks: the metric 'utility' has no attacks"),
        (
            {"channel": "tokens"},
            "attacks: the metric 'utility' has no attacks and no channel",
        ),
        ({"goal": "labels", "metric": "success"}, "goal: Input should be 'inversion'"),
        ({"expect": "equal"}, "margin: is only allowed with `expect: equal`"),
        ({"margin": 1}, "margin: is only allowed with `expect: equal`"),
        ({"size": 2.5}, "size: 2.5 contradicts `expect: less`; it is a minus b"),
        ({"expect": "equal", "margin": 1, "size": -2}, "size: -2 contradicts `expect: equal`"),
        ({"where": ""}, "where: String should have at least 1 character"),
        ({"task": []}, "task: Tuple should have at least 1 item"),
        ({"a": {"defense": "sap", "eta": 75}}, "a.eta: Unexpected keyword argument"),
    ],
)
def test_a_faulty_claim_is_refused_with_file_id_key_and_what_is_expected(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([example(**changes)]), "utf-8")
    with pytest.raises(LeakboardError) as refused:
        printed_claims(file)
    assert str(refused.value).startswith(f"{file}: noise-costs: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "must hold a list of claims"),
        ("- [", "cannot be read as YAML"),
        ("- 1", "claim 1: Input should be a valid dictionary"),
        ("- {paper: SAP}", "claim 1: id: Field required"),
    ],
)
def test_a_file_that_is_no_list_of_claims_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(LeakboardError) as refused:
        printed_claims(file)
    assert str(refused.value).startswith(f"{file}: {message}")


def test_an_id_that_two_claims_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([example(), example()]), "utf-8")
    with pytest.raises(LeakboardError, match="noise-costs: id: two claims have this id"):
        printed_claims(file)


def test_claims_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CLAIMS[0].size = 1.0  # type: ignore[misc]


def _is_pair(claim: PrintedClaim, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether both rows are selected, on one task and model, and agree in what `pair_by` names and in the cut."""
    if not (matches(claim.a, a) and matches(claim.b, b)):
        return False
    if a["task"] not in claim.task or (a["task"], a["model"]) != (b["task"], b["model"]):
        return False
    cut_is_free = claim.a.cut is not None or claim.b.cut is not None
    if a["cut"] != b["cut"] and ("cut" in claim.pair_by or not cut_is_free):
        return False
    ours, theirs = a["params"], b["params"]
    return all(ours.get(name) == theirs.get(name) for name in claim.pair_by if name != "cut")
