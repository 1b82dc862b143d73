"""Every number that a file from outside may state has bounds, and they are where the schema says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import outside_fields
import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from leakboard.bench.contracts import LeakboardError, Refused, cell, parsed, record
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


# Each field of each file, by the schemas that docs/bounds.md shows


METHODS = {"Suite.attacks", "Suite.defenses", "SuiteRow.defense"}
"""Methods, which a suite finds by name before its schema reads them."""
SCHEMAS = {
    f"{title}: {field.path}": field
    for title, group in outside_fields.MODELS.items()
    for field in outside_fields.fields(group)
    if field.path not in METHODS
}
WRONG = {
    "integer": ["x", 1.5, "1e999"],
    "number": ["x", "1e999"],
    "string": [b"\xff"],
    "boolean": ["maybe", 2],
    "array": [7],
    "object": [7, "x"],
}
ONE_FOR_MANY = {
    *("Printed.artefact", "Suite.task", "Suite.model", "Suite.cut", "Suite.seeds", "Suite.train"),
    *("Suite.plant", "Plant.copies", "Plant.canaries"),
}
"""Lists of which a single entry may stand alone."""
VALUES = {
    "null": [None],
    "integer": [10**30, -(10**30), 0],
    "number": [math.nan, math.inf, 1e308],
    "string": ["", "\0", "x" * 20_000],
    "boolean": [True],
    "array": [[], [[]], [None], [{}]],
    "object": [{}, {"x": {}}, {1: 1}],
}
"""Values of each JSON type; what a field takes or refuses, it never raises another error."""


def faults(field, value):
    """The types of the errors about one field of a file in which only that field stands."""
    try:
        field.model.model_validate({field.name: value})
    except ValidationError as error:
        own = [
            e for e in error.errors() if e["loc"] and e["loc"][0] in (field.name, *aliases(field))
        ]
        return {e["type"] for e in own}
    return set()


def aliases(field):
    alias = field.model.model_fields[field.name].validation_alias
    return list(getattr(alias, "choices", []))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_value_of_another_type_is_refused_and_a_missing_one_is_named(name):
    field = SCHEMAS[name]
    for values in VALUES.values():
        for value in values:
            faults(field, value)
    kinds = field.kinds
    if len(kinds) < len(outside_fields.WORDS):
        for kind, values in WRONG.items():
            is_only = kinds == {kind} and not (kind == "array" and field.path in ONE_FOR_MANY)
            for value in values if is_only else []:
                assert faults(field, value), (name, value)
        if "null" not in kinds and name != "Suite file: Suite.plant":  # null plants nothing
            assert faults(field, None), name
    try:
        field.model.model_validate({})
        missing = set()
    except ValidationError as error:
        missing = {e["loc"][0] for e in error.errors() if e["type"] == "missing"}
    assert bool(missing & {field.name, *aliases(field)}) == field.required


LONG = 100_000
"""Entries that take seconds to check."""
BOUNDED = [
    pytest.param(name, marks=[pytest.mark.slow] * (field.schema.get("maxItems", 0) >= LONG))
    for name, field in SCHEMAS.items()
    if {"maxLength", "maxItems"} & field.schema.keys()
]


@pytest.mark.parametrize("name", BOUNDED)
def test_a_text_or_a_list_is_bounded_where_the_schema_says(name):
    field = SCHEMAS[name]
    if "maxLength" in field.schema:
        most = field.schema["maxLength"]
        assert "string_too_long" not in faults(field, "x" * most)
        assert "string_too_long" in faults(field, "x" * (most + 1))
    else:
        most = field.schema["maxItems"]
        is_text = field.schema["items"].get("type") == "string"
        entries = [f"{i:016x}" if is_text else 0 for i in range(most + 1)]
        assert "too_long" not in faults(field, entries[:-1])
        assert "too_long" in faults(field, entries)


@pytest.mark.parametrize("title", outside_fields.MODELS)
def test_an_unknown_key_is_refused(title):
    for model in outside_fields.MODELS[title]:
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            model.model_validate({"surprise": 1})


def test_a_repeated_key_is_refused(tmp_path):
    with pytest.raises(Refused, match="a key occurs twice"):
        parsed(b'{"seed": 1, "seed": 2}', "it")
    file = tmp_path / "my.yaml"
    file.write_text("task: reviews\nseeds: 1\nseeds: 2\ndefenses: [none]\nattacks: [prior]\n")
    with pytest.raises(LeakboardError, match="seeds"):
        suite.load_suite(file)


def test_the_page_of_bounds_is_that_of_the_code():
    text = outside_fields.PAGE.read_text("utf-8")
    assert text == outside_fields.page(text), "run python tests/builders/outside_fields.py"
