"""The fields of files from outside, by the schemas that read them: type, bound, and whether they are required.

python tests/builders/outside_fields.py     # writes the tables of docs/bounds.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from leakboard.bench.backbones import folders, loading, tokeniser_child, tokeniser_trial
from leakboard.bench.contracts import cell, outside, record, threat
from leakboard.bench.exchange import manifest as transcript
from leakboard.bench.exchange import transcripts
from leakboard.bench.submissions import archive, consistency
from leakboard.bench.submissions import manifest as submission
from leakboard.bench.suites import reader, row, suite, yaml_nodes
from leakboard.bench.tasks import content, labels, readers, user_task

PAGE = Path(__file__).parents[2] / "docs" / "bounds.md"
BEGIN, END = "<!-- tables: python tests/builders/outside_fields.py -->", "<!-- end of tables -->"
MIB = 2**20
Schema = dict[str, Any]


def of(*modules: Any) -> list[type[BaseModel]]:
    """The models of modules, without their bases."""
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and value.__module__ == module.__name__
        and value.model_fields
    ]


MODELS = {
    "Suite file": of(suite, row, user_task),
    "Record": of(cell, record, threat),
    "Transcript": of(transcript),
    "Submission": of(submission),
}
"""Models of each kind of file. Those of a record are also in suites (training, recording, planting) and transcripts."""
JSON = (
    f"Numbers are finite and below 2^63, a text has at most {outside.LONGEST_TEXT:,} characters and no invisible ones, "
    f"no key is repeated, and at most {outside.MAX_DEPTH} levels are nested."
)
ABOUT = {
    "Suite file": f"At most {yaml_nodes.MOST_BYTES // 2**10} KiB, {reader.MOST_VALUES:,} values, {reader.DEEPEST} levels, "
    f"{yaml_nodes.LONGEST:,} characters in a value, and {suite.MOST_CELLS:,} cells. No key is repeated or unknown. "
    "A single value stands for a list of one. "
    "Parameters of methods have the bounds of their own fields.",
    "Record": f"In a submission at most {archive.MEMBER // MIB} MiB, {outside.MOST_PARTS:,} lists and objects, and "
    f"{consistency.MOST_LEAKS} leaks. {JSON} Each record has a checksum, and its key is the hash of its cell.",
    "Transcript": f"A manifest of at most {transcripts.MOST_BYTES // MIB} MiB. {JSON} Arrays are safetensors of the stated "
    "shape and type.",
    "Submission": f"A zip file of at most {archive.FILE // MIB} MiB, which unpacks to at most {archive.WHOLE // MIB} MiB "
    f"and holds a manifest and records only. {JSON}",
}
LIMITS = {
    "Model folder": {
        "`model*.safetensors`": "finite numbers; every weight of the architecture",
        "`config.json`, index": f"at most {folders.MOST_JSON // MIB} MiB",
        "parameters that `config.json` describes": f"at most twice those of the weights, and {folders.SPARE:,}",
        "numbers of blocks": "at most the number of tensors in the weights",
        "other counts (`num_…`, experts, groups)": f"at most {loading.MOST_COUNT:,}",
        "`num_labels`": f"at most {loading.MOST_LABELS:,}",
        "`tokenizer.json` or other files of a tokeniser": f"at most {tokeniser_trial.MOST_BYTES // MIB} MiB; a trial in a "
        f"process with {tokeniser_trial.SECONDS} s and {tokeniser_trial.MEMORY // MIB:,} MiB beyond its libraries, and "
        f"{tokeniser_trial.PER_BYTE} bytes for each byte of the files",
        "`normalizer`, `decoder`": f"a text becomes at most {tokeniser_child.MOST_GROWTH:,} times longer",
        "`post_processor`": f"at most {tokeniser_child.MOST_ADDED} special tokens are added",
        "words of the tokeniser": f"at least {loading.LEAST_SHARE:.0%} of the rows of the embeddings, and none beyond them",
    },
    "Data files": {
        "file": f"at most {content.MOST_BYTES // MIB} MiB, unpacked; at most {content.RATIO} times its packed size where that is "
        f"above {content.FLOOR // MIB} MiB",
        "`.json` list": f"at most {readers.LARGEST_LIST // MIB} MiB",
        "line": f"at most {content.LONGEST_LINE // MIB} MiB",
        "field": f"at most {readers.LONGEST_FIELD:,} characters, UTF-8, no NUL",
        "rows": f"at most {content.MOST_ROWS:,}",
        "columns": f"at most {content.MOST_COLUMNS:,}",
        "fields in all": f"at most {content.MOST_FIELDS:,}",
        "values in memory": f"at most {content.MOST_HELD // MIB} MiB",
        "values of a column of labels": f"at most {labels.MOST_CLASSES}, where they are more than half as many as the rows",
    },
}  # fmt: skip
BY_CODE = {
    "Plant.copies": f"each 0 to {cell.MOST_COPIES:,}, all different",
    "Plant.canaries": "each holds `{digits}` once",
    "Claim.profile": f"at most {threat.MOST_PAIRS} pairs of 0 < ε and 0 ≤ δ < 1",
}
"""Bounds that a validator of the model checks, in addition to those of its schema."""
WORDS = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "object": "mapping",
    "array": "list",
}


@dataclass(frozen=True)
class Field:
    """A field of a model, by its JSON schema with references resolved."""

    model: type[BaseModel]
    name: str
    schema: Schema
    required: bool

    @property
    def path(self) -> str:
        return f"{self.model.__name__}.{self.name}"

    @property
    def kinds(self) -> set[str]:
        """JSON types that it may have; empty if any."""
        return {kind for part in variants(self.schema) for kind in types(part)}


def fields(models: list[type[BaseModel]]) -> Iterator[Field]:
    """The fields of models that a file can set."""
    for model in models:
        schema = model.model_json_schema(by_alias=False, schema_generator=_Generator)
        known = schema.get("$defs", {})
        if "$ref" in schema:
            schema = known[schema["$ref"].rsplit("/", 1)[-1]]
        for name, part in schema["properties"].items():
            yield Field(model, name, resolved(part, known), name in schema.get("required", []))


class _Generator(GenerateJsonSchema):
    """Takes fields that only Python can set as any."""

    ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:
        return {}


def resolved(schema: Any, known: dict[str, Schema]) -> Any:
    """A schema in which a nested model is a mapping of its name, and an enumeration stands itself."""
    if isinstance(schema, list):
        return [resolved(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        target = known[schema["$ref"].rsplit("/", 1)[-1]]
        if "enum" in target:
            return {"enum": target["enum"]}
        return {"type": "object", "title": target.get("title"), "model": True}
    return {key: resolved(value, known) for key, value in schema.items() if key != "default"}


def variants(schema: Schema) -> list[Schema]:
    """The alternatives of a schema."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [one for part in schema[key] for one in variants(part)]
    if "allOf" in schema:
        return variants(schema["allOf"][0])
    return [schema]


def types(part: Schema) -> set[str]:
    """JSON types of one alternative."""
    if "enum" in part or "const" in part:
        return {"string" if isinstance(v, str) else "integer" for v in part.get("enum", [part.get("const")])}  # fmt: skip
    return {part["type"]} if "type" in part else set(WORDS)


def kind_and_bound(schema: Schema) -> tuple[str, str]:
    """Words for the type of a field and for its bounds."""
    kinds, bounds = [], []
    for part in variants(schema):
        kinds.append(kind_of(part))
        bounds.append(bound_of(part))
    return " or ".join(dict.fromkeys(kinds)), "; ".join(dict.fromkeys(filter(None, bounds)))


def kind_of(part: Schema) -> str:
    if "enum" in part:
        return "one of " + ", ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if "type" not in part:
        return "any"
    kind = part["type"]
    if kind == "array":
        inner = part.get("items") or {}
        return f"list of {kind_and_bound(inner)[0]}" if inner else "list"
    if kind == "object":
        values = part.get("additionalProperties")
        if part.get("model"):
            return f"mapping `{part['title']}`"
        return f"mapping to {kind_and_bound(values)[0]}" if isinstance(values, dict) and values else "mapping"  # fmt: skip
    return WORDS[kind]


def bound_of(part: Schema) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
    found = [
        f"≥ {number(low)}" if low is not None else f"> {number(above)}" if above is not None else "",
        f"≤ {number(high)}" if high is not None else f"< {number(below)}" if below is not None else "",
    ]  # fmt: skip
    for key, word in (("maxLength", "characters"), ("maxItems", "entries"), ("maxProperties", "keys")):  # fmt: skip
        if key in part:
            found.append(f"at most {part[key]:,} {word}")
    for key, word in (("minLength", "characters"), ("minItems", "entries"), ("minProperties", "keys")):  # fmt: skip
        if part.get(key):
            found.append(f"at least {part[key]} {word}")
    if "pattern" in part:
        found.append(f"pattern `{part['pattern']}`".replace("|", "\\|"))
    for key, word in (("items", "each"), ("additionalProperties", "each")):
        inner = part.get(key)
        if isinstance(inner, dict) and (bound := kind_and_bound(inner)[1]):
            found.append(f"{word} {bound}")
    names = part.get("propertyNames")
    if isinstance(names, dict) and (bound := kind_and_bound(names)[1]):
        found.append(f"keys: {bound}")
    return ", ".join(filter(None, found))


def number(value: float) -> str:
    """A bound, with powers of two and ten as such where they are long."""
    whole = int(value)
    if value == whole and abs(whole) >= 2**31 and whole & (whole - 1) == 0:
        return f"2^{whole.bit_length() - 1}"
    if abs(value) >= 1e9:
        return f"{value:g}"
    return f"{whole:,}" if value == whole else f"{value:g}"


def tables() -> str:
    """The tables of the page."""
    lines = []
    for title, models in MODELS.items():
        lines += [f"## {title}", "", ABOUT[title], "", "| field | type | bound | |", "|---|---|---|---|"]  # fmt: skip
        for field in fields(models):
            kind, bound = kind_and_bound(field.schema)
            bound = "; ".join(filter(None, [bound, BY_CODE.get(field.path, "")])) or "–"
            needed = "required" if field.required else ""
            lines.append(f"| `{field.path}` | {kind} | {bound} | {needed} |")
        lines.append("")
    for title, limits in LIMITS.items():
        lines += [f"## {title}", "", "| what | bound |", "|---|---|"]
        lines += [f"| {what} | {bound} |" for what, bound in limits.items()]
        lines.append("")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with tables of today."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{tables()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    sys.exit(0)
