"""A suite as the text of a file, which means the same when it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from leakboard.bench.methods import Method
from leakboard.bench.suites.row import SuiteRow
from leakboard.bench.suites.suite import Suite
from leakboard.bench.suites.yaml_nodes import scalar

LISTS = ("defenses", "attacks")


def suite_text(suite: Suite, comment: str = "") -> str:
    """The file of a suite: what differs from the defaults, a line for each setting of a method.

    Args:
        comment: stands above it.
    """
    told = suite.model_dump(mode="json", exclude=set(LISTS), exclude_unset=True)
    told = {key: value for key, value in told.items() if value not in (None, "")}
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{key}: {_flow(_alone(value))}" for key, value in told.items()]
    lines += ["defenses:", *(line for row in suite.defenses for line in _row(row))]
    attacks = [f"  - {_method(attack)}" for attack in suite.attacks]
    return "\n".join([*lines, "attacks:" if attacks else "attacks: []", *attacks]) + "\n"


def _row(row: SuiteRow) -> Iterator[str]:
    name = _method(row.defense)
    # A name alone is a word, below which nothing stands.
    yield (
        f"  - {name}:" if name == row.defense.name and (row.train or row.trials) else f"  - {name}"
    )
    if row.train:
        yield f"    train: {_flow(row.own)}"
    if row.trials:
        yield f"    trials: {_flow(list(row.trials))}"


def _method(method: Method) -> str:
    given = method.model_dump(mode="json", exclude_unset=True)
    return f"{method.name}: {_flow(given)}" if given else method.name


def _alone(value: Any) -> Any:
    """A list of one as what is in it: nobody writes `seeds: [0]`."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _flow(value: Any) -> str:
    text = yaml.dump(
        value,
        Dumper=_Ours,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=2**20,
    )
    return str(text).removesuffix("\n").removesuffix("\n...")


class _Ours(yaml.SafeDumper):
    """Quotes the words that suites read as numbers and YAML does not, such as 1e3."""


def _word(dumper: _Ours, text: str) -> yaml.ScalarNode:
    try:
        same = scalar(text) == text
    except ValueError:
        same = False
    style = None if same else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Ours.add_representer(str, _word)
