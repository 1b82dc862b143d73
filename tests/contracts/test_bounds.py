"""Every number that a file from outside may state has bounds, and they are where the schema says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from leakboard.bench.contracts import cell, record
from leakboard.bench.exchange import manifest
from leakboard.bench.suites import suite

FILES = {"record": (cell, record), "transcript": (manifest,), "suite": (suite,)}
ANY_FINITE = {
    *("Estimate.value", "Estimate.low", "Estimate.high", "Estimate.chance"),
    *("Leak.bound", "Record.loss"),
}
"""Results, which may be any finite number; `parsed` refuses what has more than 64 bits."""
GUESSES = {"Leak.raw", "Record.predictions", "Projection.points", "Projection.truth"}
"""Arrays, whose numbers are checked against each other when they are scored again."""
CHECKED_ELSEWHERE = {"Plant.copies"}
"""Fields with a validator of their own, which has a test."""


def models() -> Iterator[type[BaseModel]]:
    for modules in FILES.values():
        for module in modules:
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__:  # fmt: skip
                    yield value


def numbers(annotation: Any, metadata: list[Any]) -> Iterator[tuple[type, list[Any]]]:
    """Each int or float within a type, with its constraints."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        flat = [c for m in more for c in (m.metadata if isinstance(m, FieldInfo) else [m])]
        yield from numbers(inner, [*metadata, *flat])
    elif annotation in (int, float):
        yield annotation, metadata
    else:
        single = str(get_origin(annotation)) in ("<class 'types.UnionType'>", "typing.Union")
        for inner in get_args(annotation):
            yield from numbers(inner, metadata if single else [])


def numeric_fields() -> dict[str, tuple[type, list[Any]]]:
    found = {}
    for model in models():
        for name, field in model.model_fields.items():
            for i, pair in enumerate(numbers(field.annotation, field.metadata)):
                found[f"{model.__name__}.{name}" + f"[{i}]" * bool(i)] = pair
    return {
        name: pair
        for name, pair in found.items()
        if name.split("[")[0] not in ANY_FINITE | GUESSES | CHECKED_ELSEWHERE
    }


FIELDS = numeric_fields()


def bounds(constraints: list[Any]) -> tuple[float | None, float | None]:
    """Largest and smallest allowed number."""
    low = high = None
    for c in constraints:
        if isinstance(c, Ge):
            low = c.ge
        elif isinstance(c, Gt):
            low = math.nextafter(c.gt, math.inf)
        elif isinstance(c, Le):
            high = c.le
        elif isinstance(c, Lt):
            high = (
                c.lt - 1 if isinstance(c.lt, int) and c.lt > 1 else math.nextafter(c.lt, -math.inf)
            )
    return low, high


def test_fields_are_found():
    assert len(FIELDS) > 60
    assert {"TrainSettings.epochs", "Cell.seed", "Training.learning_rate"} <= FIELDS.keys()


@pytest.mark.parametrize("name", FIELDS)
def test_a_number_is_taken_at_its_bounds_and_refused_beyond(name):
    kind, constraints = FIELDS[name]
    low, high = bounds(constraints)
    assert low is not None, f"{name} has no lower bound"
    assert high is not None, f"{name} has no upper bound"
    adapter = TypeAdapter(Annotated[(kind, *constraints)])
    for good in (low, high):
        assert adapter.validate_python(good) == good
    step = 1 if kind is int else max(abs(high), 1.0)
    for bad in (low - step, high + step, math.nan, math.inf, "x", None, [], {}):
        with pytest.raises(ValidationError):
            adapter.validate_python(bad)
