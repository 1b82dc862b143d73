"""The model that is recorded: in a loop or a Trainer, its public base, and its classes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from leakboard.bench.backbones import load_backbone
from leakboard.bench.contracts import LeakboardError, Objective, form
from leakboard.bench.exchange import PublicModel
from leakboard.bench.external.cut_point import CutPoint
from leakboard.bench.external.rows import IDS

PLACEHOLDER = re.compile(r"LABEL_\d+")
"""Default name of a class in transformers."""


def model_of(given: Any) -> tuple[nn.Module, Any]:
    """The model that a loop calls, and the training set of a Trainer if it has token ids."""
    if isinstance(given, nn.Module):
        return given, None
    model = getattr(given, "model", None)
    if not isinstance(model, nn.Module) or not hasattr(given, "train_dataset"):
        raise LeakboardError(
            "model: expected a transformers model, a Trainer or another torch module, got "
            + form(given)
        )
    if getattr(given, "model_init", None) is not None:
        raise LeakboardError(
            "model: this Trainer creates a new model when it trains (model_init), which cannot be recorded; "
            "create the Trainer with model= instead"
        )
    data = given.train_dataset
    if data is None or not hasattr(data, "__len__") or not len(data):
        return model, None
    return model, data if isinstance(data[0], Mapping) and IDS in data[0] else None


def public_model(place: CutPoint, base: str | Path | None) -> PublicModel:
    """Description of the public model for the manifest.

    Raises:
        LeakboardError: the base cannot be loaded, or its shape differs from that of the model.
    """
    name, own = type(place.model).__name__, place.encoder
    if own is None or place.cut is None:
        if base is None:
            return PublicModel(name)
        try:
            return PublicModel.of(load_backbone(str(base)), place.cut or 0)
        except LeakboardError as error:
            raise LeakboardError(f"base: {error}") from error
    named = str(base or getattr(own.model.config, "name_or_path", None) or "")
    try:
        if not named:
            raise LeakboardError("it was not loaded from a folder or the hub")
        public = load_backbone(named)
    except LeakboardError as error:
        if base is not None:
            raise LeakboardError(f"base: {error}") from error
        warnings.warn(
            f"no public model is known for {name} ({error}): attacks that need it will be skipped. "
            "Name it with base=: a name such as 'minilm', a folder, or a hub id",
            stacklevel=3,
        )
        return PublicModel(name, None, len(own.embeddings), own.width_at(place.cut or 0))
    found, expected = tuple(public.embeddings.shape), tuple(own.embeddings.shape)
    if (found, public.blocks) != (expected, own.blocks):
        raise LeakboardError(
            f"base: '{named}' has {public.blocks} blocks and word embeddings {list(found)}, but the trained "
            f"model has {own.blocks} and {list(expected)}. Name the model from which training started"
        )
    return PublicModel.of(public, place.cut or 0)


def objective_of(place: CutPoint, logits: int | None) -> Objective | None:
    """The objective by the number of logits and by the model's configuration; None for classes."""
    if logits == 1:
        return "regression"
    kind = getattr(getattr(place.entrance, "config", None), "problem_type", None)
    return "multilabel" if kind == "multi_label_classification" else None


def classes_of(place: CutPoint, logits: int | None) -> int | list[str]:
    """The number of classes, or their names if the model has names for them."""
    config = getattr(place.entrance, "config", None)
    names = [str(name) for _, name in sorted((getattr(config, "id2label", None) or {}).items())]
    n = logits or max(2, len(names))
    named = len(names) == n and not any(map(PLACEHOLDER.fullmatch, names))
    return names if named else n
