"""Audit of a trained language model: membership of listed texts, and listed secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from leakboard.attacks.ez_mia import ErrorZone
from leakboard.attacks.lira import Lira
from leakboard.attacks.membership import Membership
from leakboard.attacks.min_k import MinK
from leakboard.attacks.rmia import Rmia, gains
from leakboard.bench.backbones import (
    Backbone,
    Tokens,
    differing_token,
    load_backbone,
    load_trained,
)
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Leak,
    LeakboardError,
    Progress,
    Status,
    plain,
    quietly,
)
from leakboard.bench.external import listed_secrets
from leakboard.bench.external.audit_sentences import sentences
from leakboard.bench.external.audited_texts import (
    AuditedTexts,
    Secret,
    TextSource,
    check_apart,
    read_secrets,
    read_texts,
)
from leakboard.bench.external.outcome import Audit
from leakboard.bench.external.token_readings import TokenReadings, read_tokens
from leakboard.bench.methods import Attack, spec_of
from leakboard.bench.scoring import one_run

Scores = NDArray[np.float64]
LONGEST = 512
"""Default of the largest number of tokens of a text."""
RATES = {0.001: "TPR at 0.1% FPR", 0.01: "TPR at 1% FPR"}
"""Metric of the true positive rate, by false positive rate."""
BASE_MISSING = "it compares with the base model; give --base MODEL"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ModelRequest:
    """The model to audit, and what is known of its training.

    Attributes:
        model: a folder, an adapter of peft, an embedded model, or a hub id.
        base: the model from which training started.
        members: texts that it was trained on; `others`: texts of the same kind that it was not.
        public: further texts that it was not trained on, with which RMIA compares.
        secrets: a table of secrets in the training texts.
        coins: whether an independent fair coin decided of each text whether it is a member.
        delta: δ of the bound on ε that coins allow.
        column: the column of the texts.
        longest: largest number of tokens of a text.
    """

    model: str
    members: TextSource
    others: TextSource
    base: str | None = None
    public: TextSource | None = None
    secrets: str | Path | None = None
    coins: bool = False
    delta: float = 1e-5
    column: str = "text"
    longest: int = LONGEST
    seed: int = 0


@dataclass(frozen=True)
class Evidence:
    """Readings of the audited model and of its base.

    Attributes:
        member: [n] whether each of the first n texts was trained on; the others are public.
        base: None if no base model is known.
    """

    member: NDArray[np.bool_]
    tuned: TokenReadings
    base: TokenReadings | None
    secrets: listed_secrets.SecretReadings | None = None
    base_secrets: listed_secrets.SecretReadings | None = None


def audit_model(request: ModelRequest, device: str = "cpu", progress: Progress = quietly) -> Audit:
    """Attack a trained causal language model.

    Each model is loaded once, and reads each text once, for all attacks together.

    Raises:
        LeakboardError: a model or a file cannot be used, or they do not fit together.
    """
    members, others, public, secrets = _read_files(request)
    texts = [*members.texts, *others.texts, *(public.texts if public else ())]
    member = np.arange(len(members.texts) + len(others.texts)) < len(members.texts)
    model = load_trained(request.model, request.base, device)
    vocabulary = model.tokenizer.get_vocab()
    tokens, longest = _encode(model, texts, request.longest)
    tuned = read_tokens(model, tokens, progress)
    asked = (secrets, longest, request.seed, progress)
    found = listed_secrets.read_model(model, *asked) if secrets else None
    del model  # only one model is in memory at a time
    base, before = None, None
    if request.base is not None:
        public_model = load_backbone(request.base, device)
        _check_tokenisers(request, vocabulary, public_model)
        base = read_tokens(public_model, _encode(public_model, texts, longest)[0], progress)
        before = listed_secrets.read_model(public_model, *asked) if secrets else None
    evidence = Evidence(member, tuned, base, found, before)
    leaks = _membership_leaks(evidence, request)
    if secrets and found:
        leaks += listed_secrets.leaks_of(found, before, secrets)
    notes = [each.note for each in (members, others, public) if each and each.note]
    cut = int((tokens.lengths >= longest).sum())
    if cut:
        notes.append(f"{cut} texts have {longest} tokens or more; only these are read.")
    if note := _difference_without_training(evidence):
        notes.append(note)
    return Audit(leaks, summary=[*sentences(leaks, request.coins, request.delta), *notes])


def _read_files(
    request: ModelRequest,
) -> tuple[AuditedTexts, AuditedTexts, AuditedTexts | None, tuple[Secret, ...]]:
    if not 0 <= request.delta < 1:
        raise LeakboardError(f"delta: expected a number in [0, 1), not {request.delta}")
    if request.longest < 2:
        raise LeakboardError(
            f"max-length: expected at least 2 tokens of a text, not {request.longest}"
        )
    members = read_texts(request.members, "members", request.column)
    others = read_texts(request.others, "others", request.column)
    check_apart(members, others, "others")
    public = None
    if request.public is not None:
        public = read_texts(request.public, "public", request.column)
        for each in (members, others):
            check_apart(each, public, "public")
    return members, others, public, read_secrets(request.secrets) if request.secrets else ()


def _encode(model: Backbone, texts: list[str], longest: int) -> tuple[Tokens, int]:
    """Tokens of the texts as a language model is trained on them, and the length to which they are cut."""
    model.output_layer()  # before any work: a classifier has none
    longest = min(longest, model.family.positions(model.model) or longest)
    return model.encode(texts, None, longest, opened=True), longest


def _check_tokenisers(request: ModelRequest, vocabulary: dict[str, int], base: Backbone) -> None:
    word = differing_token(vocabulary, base.tokenizer.get_vocab())
    if word is not None:
        raise LeakboardError(
            f"base: '{request.base}' and '{request.model}' have different tokenisers, for example in the token "
            f"'{plain(word, 40)}', so that their losses cannot be compared. Name the model from which the training "
            "started, or leave out --base"
        )


def _membership_leaks(evidence: Evidence, request: ModelRequest) -> list[Leak]:
    """Scores of all membership attacks, and the reasons why others have none."""
    n, attacks = len(evidence.member), _attacks(evidence)
    ran = {view: scores for view, (_, scores) in attacks.items() if not isinstance(scores, str)}
    leaks = []
    for view, (attack, scores) in attacks.items():
        spec = spec_of(attack)
        if isinstance(scores, str):
            status: Status = "skipped"
            leaks.append(Leak(attack=spec, status=status, reason=scores, goal=Goal.MEMBERSHIP))
            continue
        about = {
            "attack": spec,
            "status": "ok",
            "goal": Goal.MEMBERSHIP,
            "view": view if view != attack.name else "",
            "channel": Channel.MODEL,
            "units": n,
        }
        values, member = scores()[:n], evidence.member
        proven = {}
        if request.coins:
            # The largest bound of all attacks is reported, so that each has its share of the 5 %.
            confidence = 1 - (1 - CONFIDENCE) / len(ran)
            proven = {
                "epsilon": one_run.audit(values, member, request.delta, confidence=confidence),
                "epsilon_ceiling": one_run.ceiling(n, request.delta, confidence=confidence),
            }
        leaks.append(Leak(metric="AUC", success=one_run.auc(values, member), **about, **proven))
        for rate, metric in RATES.items():
            success = one_run.tpr_at(rate, values, member)
            leaks.append(Leak(metric=metric, success=success, **about))
    return leaks


def _attacks(evidence: Evidence) -> dict[str, tuple[Attack, Callable[[], Scores] | str]]:
    """By view each attack with its scores of all texts, larger for likely members, or why it has none."""
    tuned, base = evidence.tuned, evidence.base
    public = len(tuned.losses) - len(evidence.member)
    loss, calibrated = Membership(score="loss"), Membership(score="calibrated")
    least, zone, rmia, lira = MinK(), ErrorZone(), Rmia(), Lira()
    found: dict[str, tuple[Attack, Callable[[], Scores] | str]] = {
        "loss": (loss, lambda: -tuned.means().numpy()),
        "min-k": (least, lambda: _least(least, tuned)),
    }
    if base is None:
        for view, attack in (("calibrated", calibrated), ("ez-mia", zone), ("rmia", rmia)):
            found[view] = (attack, BASE_MISSING)
    else:
        own = base
        found["calibrated"] = calibrated, lambda: (own.means() - tuned.means()).numpy()
        found["ez-mia"] = zone, lambda: _zone(zone, tuned, own)
        found["rmia"] = (
            rmia,
            (lambda: _rmia(rmia, tuned, own, len(evidence.member)))
            if public
            else "it compares with further texts that were not trained on; give --public FILE",
        )
    reason = "it needs shadow models that are trained as this one was; `plant: {audit: …}` in a suite trains them"
    found["lira"] = lira, reason
    return found


def _least(attack: MinK, tuned: TokenReadings) -> Scores:
    each = torch.split(tuned.standardised.values, tuned.standardised.lengths.tolist())
    return torch.stack([attack.least(own) for own in each]).double().numpy()


def _zone(attack: ErrorZone, tuned: TokenReadings, base: TokenReadings) -> Scores:
    shift = (base.losses.values - tuned.losses.values) * ~tuned.hits.values
    scores: Scores = attack.log_ratio(tuned.losses.with_values(shift).padded()).double().numpy()
    return scores


def _rmia(attack: Rmia, tuned: TokenReadings, base: TokenReadings, n: int) -> Scores:
    """[n] scores of the first n texts; the texts behind them are the population."""
    assert isinstance(attack.a, float)
    every = gains(-tuned.means().numpy(), np.exp(-base.means().numpy()), attack.a)
    return attack.shares(every[:n], every[n : n + attack.population])


def _difference_without_training(evidence: Evidence) -> str:
    """A warning if the base model, which was trained on neither, tells members from others."""
    if evidence.base is None:
        return ""
    n = len(evidence.member)
    success = one_run.auc(-evidence.base.means().numpy()[:n], evidence.member)
    if success.low <= 0.5 <= success.high:
        return ""
    return (
        f"The two files differ already for the base model (AUC {success.value:.2f}), which saw neither: part of the "
        "success above may be a difference of topic or style. Draw members and others from one source."
    )
