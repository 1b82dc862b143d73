"""Readings of an audited classifier, and of a reference that was not trained on the texts."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.backbones import (
    Classifier,
    Ragged,
    by_length,
    evaluated,
    is_adapted,
    is_classifier,
    is_classifier_module,
    load_classifier,
    load_encoder,
)
from leakboard.bench.contracts import LeakboardError, Progress
from leakboard.bench.external.audit_request import ModelRequest
from leakboard.bench.external.audited_texts import AuditedTexts
from leakboard.bench.external.base_check import Fingerprint
from leakboard.bench.external.membership_scores import ClassReadings

BATCH = 32
"""Texts in one pass."""
NO_BASE = "it compares with a classifier that was not trained on the texts; give --base CLASSIFIER, or --base MODEL and --public FILE"
NO_HEAD = "the base model has no classification head; give --public FILE with labels, on which one is trained"
SMOOTHING = 1e-3
"""Probability that the reference gives to all classes together, so that none is impossible."""


def read_classifier(
    request: ModelRequest, files: list[AuditedTexts], device: str, progress: Progress
) -> tuple[ClassReadings, str]:
    """Read each text once by the classifier, and once by its base.

    The base is a classifier with the same classes, whose predictions are the reference. Or it has no head that was
    trained, as an encoder, or a model below its adapter. Then a logistic regression on its hidden states, trained on one
    half of the public texts, is the reference, and RMIA compares with the other half.

    Args:
        files: members, others, and perhaps public texts, with labels.

    Returns:
        The readings, and why there is no reference.

    Raises:
        LeakboardError: a model cannot be used, or a label is none of its classes.
    """
    texts = [text for one in files for text in one.texts]
    tested = len(files[0].texts) + len(files[1].texts)
    model = _open(request, device)
    labels = torch.tensor([each for one in files for each in _classes(one, model)])
    start, classes = Fingerprint.of(model.module, model.tokenizer), model.labels
    ids = model.encode(texts, request.longest)
    with evaluated(model.module):
        logs = _read(model, ids, progress)
    base = _open_base(request, model, device)
    if base is None:
        return ClassReadings(logs, labels, None, slice(tested, len(texts))), NO_BASE
    start.check_base(Fingerprint.of(base.module, base.tokenizer), request.name, request.base_name)
    own = base.encode(texts, request.longest)
    del model  # only one model is in memory at a time
    if _has_head(request) and len(base.labels) != len(classes):
        raise LeakboardError(
            f"base: '{request.base_name}' has {len(base.labels)} classes, but '{request.name}' has {len(classes)}. Name a "
            "classifier with the same classes, or its base model without a head"
        )
    with evaluated(base.module, adapted=request.base is not None):
        if _has_head(request):
            known = _read(base, own, progress).gather(1, labels[:, None])[:, 0]
            return ClassReadings(logs, labels, known, slice(tested, len(texts))), ""
        if tested == len(texts):
            return ClassReadings(logs, labels, None, slice(tested, tested)), NO_HEAD
        features = _read(base, own, progress, head=False)
    fitted, rest = slice(tested, None, 2), slice(tested + 1, None, 2)
    reference = _reference(features, labels, fitted, len(classes))
    return ClassReadings(logs, labels, reference, rest), ""


def _open(request: ModelRequest, device: str) -> Classifier:
    if isinstance(request.model, str):
        base = request.base if isinstance(request.base, str) else None
        return load_classifier(request.model, base, device)
    return Classifier.of(request.model, request.tokenizer, request.name)


def _open_base(request: ModelRequest, model: Classifier, device: str) -> Classifier | None:
    """The base, which may be the model itself, to be read without its adapter."""
    if request.base is None:
        return model if is_adapted(model.module) else None
    if not isinstance(request.base, str):
        if not is_classifier_module(request.base):
            raise LeakboardError(
                f"base: {request.base_name} is in memory but is not a classifier; give its folder or its name instead"
            )
        return Classifier.of(request.base, request.tokenizer, request.base_name)
    return (load_classifier if _has_head(request) else _load_encoder)(request.base, None, device)


def _load_encoder(name: str, _: None, device: str) -> Classifier:
    return load_encoder(name, device)


def _has_head(request: ModelRequest) -> bool:
    """Whether the base is a trained classifier itself."""
    if isinstance(request.base, str):
        return is_classifier(request.base)
    return request.base is not None


def _classes(texts: AuditedTexts, model: Classifier) -> list[int]:
    found = []
    for label, where in zip(texts.labels, texts.places, strict=True):
        try:
            found.append(model.class_of(label))
        except LeakboardError as error:
            raise LeakboardError(f"{where}: the label {error}") from error
    return found


def _read(model: Classifier, ids: Ragged, progress: Progress, head: bool = True) -> Tensor:
    """[n, C] ln p of each class, or [n, d] features, in batches of similar length."""
    size = 1 if model.padding is None else BATCH
    batches, read = by_length(ids.lengths, size), model.logs if head else model.features
    parts = [
        read(ids.take(rows))
        for rows in progress(f"scoring texts by {model.name}", batches, len(batches))
    ]
    return torch.cat(parts)[torch.cat(batches).argsort()].clone()


def _reference(features: Tensor, labels: Tensor, fitted: slice, classes: int) -> Tensor:
    """[n] ln p of the true class by a logistic regression that is trained on some rows."""
    from sklearn.linear_model import LogisticRegression  # it takes a second to load
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    known = labels[fitted].numpy()
    if len(np.unique(known)) < 2:
        raise LeakboardError(
            "public: half of its texts train a classification head, but they have only one label; give texts of all classes"
        )
    head = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    head.fit(features[fitted].numpy(), known)
    p = np.zeros((len(labels), classes))
    p[:, head.classes_] = head.predict_proba(features.numpy())
    p = (1 - SMOOTHING) * p + SMOOTHING / classes
    return torch.from_numpy(np.log(p[np.arange(len(labels)), labels.numpy()]))
