"""What the class of a method says of itself."""

from __future__ import annotations

import inspect
from typing import Any

from leakboard.bench.methods import Attack, Defense, Method


def facts(cls: type[Method]) -> dict[str, Any]:
    """Its docstring by paragraphs, source, threat model, and parameters with defaults and meaning."""
    threat: dict[str, str] = {}
    if issubclass(cls, Attack):
        threat = {
            "guesses": _listed(cls.threat.goals),
            "reads any of": _listed(cls.threat.reads) or "nothing",
            "knows": _listed(cls.threat.knows) or "nothing else",
        }
    elif issubclass(cls, Defense):
        by = [f"{goal}: {', '.join(names)}" for goal, names in cls.measured_by.items()]
        threat = {
            "the other party sees": _listed(cls.emits),
            "trains for": _listed(cls.objectives),
            "its authors measure it by": "; ".join(by) or "–",
        }
    paragraphs = inspect.cleandoc(cls.__doc__ or "").split("\n\n")
    return {
        "paragraphs": [" ".join(paragraph.split()) for paragraph in paragraphs],
        "source": cls.source,
        "version": cls.version,
        "costly": issubclass(cls, Attack) and cls.costly,
        "threat": threat,
        "parameters": [
            (name, _default(field.get_default()), " ".join((field.description or "").split()))
            for name, field in cls.model_fields.items()
        ],
    }


def _default(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
