"""What a server reads of labels in activations, by how many adapters are mixed and how far apart their weights lie."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from leakboard.leaderboards.findings.finding import Finding
from leakboard.leaderboards.findings.servers import along
from leakboard.leaderboards.tables import Comparison, format_parameter

MIXED = ("adapters", "sigma")
"""The parameters of a secret mixture."""


def found(compared: Sequence[Comparison]) -> Iterator[Finding]:
    """The strongest attack on activations along each of them, beside the utility that is left."""
    for comparison in compared:
        for name in MIXED:
            yield from along("mixing", comparison, name, {name}, partial(_said, name))


def _said(name: str, row: dict[Any, Any]) -> str:
    value = json.loads(row["params"])[name]
    return f"{format_parameter(name, value)} ({row['utility']:.3f} of {row['utility_metric']})"
