"""Audit of a model that is trained already: membership of listed texts, and listed secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.backbones import (
    Backbone,
    Tokens,
    evaluated,
    is_adapted,
    is_classifier,
    is_classifier_module,
    load_backbone,
    load_trained,
    wrap_language_model,
)
from leakboard.bench.contracts import Leak, LeakboardError, Progress, quietly
from leakboard.bench.external import listed_secrets
from leakboard.bench.external.audit_request import ModelRequest
from leakboard.bench.external.audit_sentences import sentences
from leakboard.bench.external.audited_classifier import read_classifier
from leakboard.bench.external.audited_texts import (
    AuditedTexts,
    Secret,
    check_apart,
    read_secrets,
    read_texts,
)
from leakboard.bench.external.base_check import Fingerprint
from leakboard.bench.external.membership_scores import (
    RATES,
    Attempts,
    attempts_on_classifier,
    attempts_on_language_model,
    membership_leaks,
)
from leakboard.bench.external.outcome import Audit
from leakboard.bench.external.token_readings import TokenReadings, read_tokens
from leakboard.bench.scoring import one_run

Scores = NDArray[np.float64]


def audit_model(request: ModelRequest, device: str = "cpu", progress: Progress = quietly) -> Audit:
    """Attack a trained language model or classifier.

    Each model is loaded once, and reads each text once, for all attacks together.

    Raises:
        LeakboardError: a model or a file cannot be used, or they do not fit together.
    """
    labelled = _is_classifier(request)
    files, secrets = _read_files(request, labelled)
    member = np.arange(len(files[0].texts) + len(files[1].texts)) < len(files[0].texts)
    notes = [each.note for each in files if each.note]
    leaks: list[Leak] = []
    if labelled:
        if secrets:
            raise LeakboardError(
                "secrets: a classifier does not generate text; leave out --secrets"
            )
        found, missing = read_classifier(request, files, device, progress)
        attempts = attempts_on_classifier(found, missing)
        reference = None if found.reference is None else found.reference.numpy()
    else:
        texts = [text for one in files for text in one.texts]
        attempts, reference, leaks, more = _language_model(
            request, texts, len(member), secrets, device, progress
        )
        notes += more
    members, best = membership_leaks(attempts, member, request.coins, request.delta)
    if note := _difference_without_training(reference, member):
        notes.append(note)
    every = [*members, *leaks]
    summary = sentences(every, best, request.coins, request.delta)
    strongest = {
        "attacks": [*best.chosen],
        "AUC": best.auc.model_dump(mode="json"),
        **{RATES[rate]: one.model_dump(mode="json") for rate, one in best.rates.items()},
    }
    return Audit(tuple(every), summary=(*summary, *notes), strongest=strongest)


def _is_classifier(request: ModelRequest) -> bool:
    if isinstance(request.model, str):
        return is_classifier(request.model)
    if request.tokenizer is None:
        raise LeakboardError(
            "tokenizer: a model in memory needs its tokeniser: audit(model, tokenizer=tokenizer, …)"
        )
    return is_classifier_module(request.model)


def _read_files(
    request: ModelRequest, labelled: bool
) -> tuple[list[AuditedTexts], tuple[Secret, ...]]:
    """Members, others and public texts, and secrets."""
    if not 0 <= request.delta < 1:
        raise LeakboardError(f"delta: expected a number in [0, 1), not {request.delta}")
    if request.longest < 2:
        raise LeakboardError(
            f"max-length: expected at least 2 tokens of a text, not {request.longest}"
        )
    label = request.label if labelled else None
    files: list[AuditedTexts] = []
    for option in ("members", "others", "public"):
        source = getattr(request, option)
        if source is None:
            continue
        files.append(read_texts(source, option, request.column, label))
        for before in files[:-1]:
            check_apart(before, files[-1], option)
    return files, read_secrets(request.secrets) if request.secrets else ()


def _language_model(
    request: ModelRequest,
    texts: list[str],
    candidates: int,
    secrets: tuple[Secret, ...],
    device: str,
    progress: Progress,
) -> tuple[Attempts, Scores | None, list[Leak], list[str]]:
    """Attacks on a language model, the losses under its base, results about secrets, and notes."""
    model, module = _open(request, device)
    start = Fingerprint.of(model.model, model.tokenizer)
    tokens, longest = _encode(model, texts, request.longest)
    args = (secrets, longest, request.seed, progress)
    with evaluated(module):
        tuned = read_tokens(model, tokens, progress)
        found = listed_secrets.read_model(model, *args) if secrets else None
    adapted = is_adapted(module)
    base: Backbone | None
    if request.base is None and adapted:
        name = f"{model.name} without its adapter"
        base, below = replace(model, name=name), module
    else:
        del model, module  # only one model is in memory at a time
        base, below = _open_base(request, device)
    before: TokenReadings | None = None
    shown = None
    if base is not None:
        start.check_base(
            Fingerprint.of(base.model, base.tokenizer), request.name, request.base_name
        )
        with evaluated(below, adapted=request.base is not None or not adapted):
            before = read_tokens(base, _encode(base, texts, longest)[0], progress)
            shown = listed_secrets.read_model(base, *args) if secrets else None
    leaks = listed_secrets.leaks_of(found, shown, secrets) if secrets and found else []
    cut = int((tokens.lengths >= longest).sum())
    notes = [f"{cut} texts have {longest} tokens or more; only these are read."] if cut else []
    reference = None if before is None else -before.means().numpy()
    return attempts_on_language_model(tuned, before, candidates), reference, leaks, notes


def _open(request: ModelRequest, device: str) -> tuple[Backbone, Any]:
    """The audited model, and the module that holds its adapter."""
    if isinstance(request.model, str):
        base = request.base if isinstance(request.base, str) else None
        model = load_trained(request.model, base, device)
        return model, model.model
    with evaluated(request.model):
        return wrap_language_model(request.model, request.tokenizer), request.model


def _open_base(request: ModelRequest, device: str) -> tuple[Backbone | None, Any]:
    if request.base is None:
        return None, None
    if isinstance(request.base, str):
        model = load_backbone(request.base, device)
        return model, model.model
    with evaluated(request.base):
        return wrap_language_model(request.base, request.tokenizer), request.base


def _encode(model: Backbone, texts: list[str], longest: int) -> tuple[Tokens, int]:
    """Tokens of the texts as a language model is trained on them, and the length to which they are cut."""
    model.output_layer()  # before any work: a classifier has none
    longest = min(longest, model.family.positions(model.model) or longest)
    return model.encode(texts, None, longest, opened=True), longest


def _difference_without_training(reference: Scores | None, member: NDArray[np.bool_]) -> str:
    """A warning if the base model, which was trained on neither, tells members from others."""
    if reference is None:
        return ""
    success = one_run.auc(reference[: len(member)], member)
    if success.low <= 0.5 <= success.high:
        return ""
    return (
        f"The two files differ already for the base model (AUC {success.value:.2f}), which saw neither: part of the "
        "success above may be a difference of topic or style. Draw members and others from one source."
    )
