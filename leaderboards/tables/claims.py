"""Claims that papers make, as comparisons of two settings that records can decide."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from leakboard.bench.contracts import Channel, Goal, LeakboardError, Part
from leakboard.leaderboards.tables.frame import Row

TABLE = Path(__file__).with_name("claims.yaml")

Scalar = bool | int | float | str | None
"""The value of one parameter."""


def _as_alternatives(value: object) -> object:
    return value if isinstance(value, list | tuple) else (value,)


OneOrMore = Annotated[tuple[Scalar, ...], BeforeValidator(_as_alternatives), Field(min_length=1)]
"""Alternatives; a single value may stand without a list."""
Cuts = Annotated[tuple[int, ...], BeforeValidator(_as_alternatives), Field(min_length=1)]


class Selector(Part):
    """Settings of one defense."""

    defense: str
    params: dict[str, OneOrMore] = Field(default_factory=dict)
    """Parameters with their allowed values; all others are free."""
    cut: Cuts | None = None
    """Allowed cuts; None allows any."""
    undefended: bool | None = None
    """Restricts to settings that protect nothing (true) or to the others (false)."""


class PrintedClaim(Part):
    """A comparison of two settings, a minus b, that a paper makes. `claims.yaml` explains each key."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    paper: str = Field(min_length=1)
    where: str = Field(min_length=1)
    """Section and table or figure."""
    claim: str = Field(min_length=1)
    """The claim in one sentence."""
    group: str | None = None
    """Claims of one group must all hold."""
    goal: Goal | None = None
    metric: Literal["utility", "success", "leakage", "exposure", "perplexity"]
    """Utility in points, success and leakage as shares, exposure in bits, perplexity per token."""
    task: tuple[str, ...] = Field(min_length=1)
    """The claim is about each of these tasks."""
    a: Selector
    b: Selector
    pair_by: tuple[str, ...] = ()
    """Parameters, or `cut`, in which the settings of a pair agree."""
    expect: Literal["less", "more", "equal"]
    """The value of a relative to b."""
    size: float | None = None
    """The printed difference, a minus b, in the unit of the metric."""
    margin: float | None = Field(None, gt=0)
    """With `equal`: the largest difference either way that still counts as equal."""
    attacks: tuple[str, ...] = ()
    """The paper's own attacks; empty: the strongest attack decides."""
    channel: Channel | None = None
    """The channel that these attacks read, where they read several."""
    view: Literal["train", "test"] | None = None
    """The examples that are attacked; None where the claim is about all."""
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        attacked = self.metric in ("success", "leakage", "exposure")
        if attacked != (self.goal is not None):
            needs = "needs a goal" if attacked else "has no goal"
            raise ValueError(f"goal: the metric '{self.metric}' {needs}")
        if not attacked and (self.attacks or self.channel or self.view):
            raise ValueError(
                f"attacks: the metric '{self.metric}' has no attacks, no channel and no view"
            )
        if (self.expect == "equal") != (self.margin is not None):
            raise ValueError("margin: belongs to `expect: equal`, and only there")
        if self.size is not None and not self._agrees(self.size):
            raise ValueError(
                f"size: {self.size:g} contradicts `expect: {self.expect}`; it is a minus b"
            )
        return self

    def _agrees(self, size: float) -> bool:
        if self.margin is not None:
            return abs(size) <= self.margin
        return size < 0 if self.expect == "less" else size > 0


def printed_claims(path: Path = TABLE) -> list[PrintedClaim]:
    """All claims of a file, in its order.

    Raises:
        LeakboardError: the file is not a list of claims. The message names the file, the claim, the
            key and what is expected there.
    """
    try:
        entries = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LeakboardError(f"{path}: cannot be read as YAML: {error}") from error
    if not isinstance(entries, list):
        raise LeakboardError(f"{path}: must hold a list of claims")
    claims: dict[str, PrintedClaim] = {}
    for number, entry in enumerate(entries, start=1):
        claim = _parse(entry, f"{path}: {_name(entry, number)}")
        if claim.id in claims:
            raise LeakboardError(f"{path}: {claim.id}: id: two claims have it; rename one")
        claims[claim.id] = claim
    return list(claims.values())


def matches(selector: Selector, row: Row) -> bool:
    """True if a row holds one of the selected settings.

    A parameter that the row lacks matches no value.

    Args:
        row: has `defense`, `params` (JSON or a mapping), `cut` and `undefended`.
    """
    if row["defense"] != selector.defense:
        return False
    if selector.undefended is not None and bool(row["undefended"]) != selector.undefended:
        return False
    if selector.cut is not None and row["cut"] not in selector.cut:
        return False
    params = _params(row)
    return all(
        name in params and any(_is_same(params[name], value) for value in values)
        for name, values in selector.params.items()
    )


def is_pair(claim: PrintedClaim, a: Row, b: Row) -> bool:
    """True if the claim compares these two rows with each other.

    Both are selected, on one task of the claim and one model, and agree in all that `pair_by` names.
    The cut is shared, too, unless a selector names one.
    """
    if not (matches(claim.a, a) and matches(claim.b, b)):
        return False
    if a["task"] not in claim.task or (a["task"], a["model"]) != (b["task"], b["model"]):
        return False
    cut_is_free = claim.a.cut is not None or claim.b.cut is not None
    if a["cut"] != b["cut"] and ("cut" in claim.pair_by or not cut_is_free):
        return False
    ours, theirs = _params(a), _params(b)
    shared = [name for name in claim.pair_by if name != "cut"]
    return all(_is_same(ours.get(name), theirs.get(name)) for name in shared)


def _parse(entry: object, where: str) -> PrintedClaim:
    try:
        return PrintedClaim.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise LeakboardError(": ".join(part for part in (where, key, message) if part)) from error


def _name(entry: object, number: int) -> str:
    """The id of an entry, or its place in the file where it has none."""
    given = entry.get("id") if isinstance(entry, dict) else None
    return str(given or f"claim {number}")


def _params(row: Row) -> Mapping[str, Any]:
    params = row["params"]
    known: Mapping[str, Any] = json.loads(params) if isinstance(params, str) else params
    return known


def _is_same(one: Any, other: Any) -> bool:
    """Equality of parameters; in Python, True equals 1 as well."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
