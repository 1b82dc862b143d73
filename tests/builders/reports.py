"""What a report on a method says."""

from __future__ import annotations

from typing import ClassVar

from bench.methods.method import Source
from defenses.none import NoDefense


def broken(report):
    return {result.rule for result in report.failures}


def outcome(report, rule):
    (result,) = (r for r in report.results if rule in r.rule)
    return result


class NoSource(NoDefense):
    """Comes from nowhere."""

    source: ClassVar[Source] = Source("")
