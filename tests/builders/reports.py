"""What a report on a method says."""

from __future__ import annotations

from typing import ClassVar

from leakboard.bench.methods.method import Source
from leakboard.defenses.none import NoDefense


def broken(report):
    return {result.rule for result in report.failures}


def outcome(report, rule):
    (result,) = (r for r in report.results if rule in r.rule)
    return result


def rules_of(cls):
    """The rules that a class of rules examines, each with the name of its function."""
    found = {}
    for one in reversed(cls.__mro__):
        found |= {value.rule: name for name, value in vars(one).items() if hasattr(value, "rule")}
    return found


def examined(rules, rule):
    """The result of the one rule with these words in it; the others are not examined."""
    (name,) = (name for text, name in rules_of(type(rules)).items() if rule in text)
    return rules._examined(rule, getattr(rules, name))


def alone(rules, rule):
    """What comes of one rule; the others are not examined."""
    return examined(rules, rule).outcome


def give_names(classes):
    """Names each class by its own name, unless it sets one; it would have that of the method above it."""
    for cls in classes:
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()


class NoSource(NoDefense):
    """Comes from nowhere."""

    name: ClassVar[str] = "no-source"
    source: ClassVar[Source] = Source("")
