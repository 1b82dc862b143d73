"""Suites as the text of a YAML file, which means the same when it is read."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from leakboard.bench.methods import Method
from leakboard.bench.suites.row import SuiteRow
from leakboard.bench.suites.suite import Suite
from leakboard.bench.suites.yaml_nodes import scalar

LISTS = ("defenses", "attacks")


def suite_text(suite: Suite, comment: str = "") -> str:
    """The file of a suite: what differs from the defaults, one line for each setting of a method.

    Args:
        comment: text for the head of the file, without `#`.
    """
    values = suite.model_dump(mode="json", exclude=set(LISTS), exclude_unset=True)
    document = CommentedMap(
        {key: _node(_unwrap(value)) for key, value in values.items() if value not in (None, "")}
    )
    document["defenses"] = [_row(row) for row in suite.defenses]
    document["attacks"] = [_method(attack) for attack in suite.attacks]
    if comment:
        document.yaml_set_start_comment(comment)
    writer = YAML()
    writer.width = 2**20
    writer.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    writer.dump(document, text)
    return text.getvalue()


def _row(row: SuiteRow) -> Any:
    method = _method(row.defense)
    settings: dict[str, Any] = {}
    if row.train:
        settings["train"] = _node(row.own)
    if row.trials:
        settings["trials"] = _node(list(row.trials))
    if row.tuned_on:
        settings["tuned_on"] = row.tuned_on
    if not settings:
        return method
    # A name without parameters is then the key of an empty mapping.
    return CommentedMap({**(method if isinstance(method, dict) else {method: None}), **settings})


def _method(method: Method) -> Any:
    parameters = method.model_dump(mode="json", exclude_unset=True)
    return CommentedMap({method.name: _node(parameters)}) if parameters else method.name


def _unwrap(value: Any) -> Any:
    """The entry of a list of length 1, as in `seeds: 0`; else the value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _node(value: Any) -> Any:
    """A value in flow style; words that a suite would read as numbers, such as 1e3, are quoted."""
    if isinstance(value, str):
        return DoubleQuotedScalarString(value) if _is_number(value) else value
    if not isinstance(value, dict | list):
        return value
    node: Any
    if isinstance(value, dict):
        node = CommentedMap({key: _node(each) for key, each in value.items()})
    else:
        node = CommentedSeq([_node(each) for each in value])
    node.fa.set_flow_style()
    return node


def _is_number(word: str) -> bool:
    try:
        return scalar(word) != word
    except ValueError:
        return True
