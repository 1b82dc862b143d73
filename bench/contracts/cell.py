"""A cell: everything that decides the outcome of one fine-tuning."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from leakboard.bench.contracts.parts import Part
from leakboard.bench.contracts.settings import Plant, Recording, TrainSettings


class MethodSpec(Part):
    """A method with all its parameters, defaults included."""

    name: str
    params: dict[str, Any] = {}
    version: int = 1


class Cell(Part):
    """Everything that decides the outcome of one fine-tuning. Its hash is the record's key."""

    task: str
    data_hash: str
    """Content of all splits, before `limit`."""
    limit: int | None
    """At most so many examples of each split, drawn with the data seed."""
    evaluate: str
    """The split on which utility is measured."""
    model: str
    model_hash: str
    cut: int
    defense: MethodSpec
    train: TrainSettings
    record: Recording
    seed: int
    plant: Plant | None = None
    shadow: int | None = None
    """The number of a model that an attacker trains like this one, on coins and seeds of its own."""

    @property
    def key(self) -> str:
        content = self.model_dump(mode="json")
        # Younger than the first records, whose keys must not change.
        if self.plant is None:
            del content["plant"]
        else:
            for name in ("per_author", "candidates"):
                if content["plant"][name] == Plant.model_fields[name].default:
                    del content["plant"][name]
        if self.shadow is None:
            del content["shadow"]
        for name in ("tune", "precision"):
            if content["train"][name] == TrainSettings.model_fields[name].default:
                del content["train"][name]
        return digest(content)[:16]


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def attack_id(spec: MethodSpec) -> str:
    """Tells two attacks apart: name, version and parameters."""
    return digest(spec.model_dump(mode="json"))
