"""Extraction and exposure of listed secrets from a trained language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.extraction import Extraction
from leakboard.bench.attacking import Writer, expected_unseen, exposure
from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import (
    Channel,
    Estimate,
    Goal,
    Leak,
    LeakboardError,
    MethodSpec,
    Progress,
)
from leakboard.bench.external.audited_texts import Secret
from leakboard.bench.external.token_readings import read_tokens
from leakboard.bench.methods import spec_of
from leakboard.bench.scoring import GAINED, metrics

CANDIDATES = 1000
"""Number of secrets among which a listed one is ranked: itself, and random ones with as many digits."""
FEWEST_DIGITS = 3
"""Smallest number of digits of a secret that can be ranked among `CANDIDATES`."""
TRIES = 10
"""Sampled continuations of each prompt, in addition to the greedy one."""
SLACK = 4
"""Tokens that a continuation may have beyond those of the secret."""
CEILING = float(np.log2(CANDIDATES))


@dataclass(frozen=True)
class SecretReadings:
    """What one model reveals of listed secrets.

    Attributes:
        printed: [n] whether the greedy continuation, or a sampled one, holds the secret; [n, 2].
        bits: [n] exposure; NaN for secrets with fewer than `FEWEST_DIGITS` digits.
    """

    printed: NDArray[np.bool_]
    bits: NDArray[np.float64]


def read_model(
    model: Backbone, secrets: Sequence[Secret], longest: int, seed: int, progress: Progress
) -> SecretReadings:
    """Prompt a model with the text before each secret, and rank each secret among random ones."""
    attack = Extraction()
    most = model.family.positions(model.model)
    writer = Writer(model.model, model.output_layer(), attack.top_k, attack.temperature, most)
    draw = torch.Generator().manual_seed(seed)
    printed, bits = [], []
    what = f"asking {model.name} for secrets"
    for i, secret in enumerate(progress(what, secrets, len(secrets))):
        printed.append(_printed(writer, model, secret, longest, draw))
        bits.append(_exposure(model, secret, longest, np.random.default_rng([seed, i])))
    return SecretReadings(np.array(printed), np.array(bits))


def _printed(
    writer: Writer, model: Backbone, secret: Secret, longest: int, draw: torch.Generator
) -> tuple[bool, bool]:
    """Whether the greedy continuation, and any continuation, of the text before a secret holds it."""
    n_tokens = len(model.tokenizer(secret.secret, add_special_tokens=False)["input_ids"])
    length = n_tokens + SLACK
    ids = model.encode([secret.before.rstrip()], None, longest, opened=True).ids.values
    if writer.positions is not None:
        ids = ids[-max(1, writer.positions - length) :]
    texts = writer.continued(ids, length, TRIES, draw)
    wanted = "".join(secret.secret.split())
    hits = [wanted in "".join(model.tokenizer.decode(each).split()) for each in texts.tolist()]
    return hits[0], any(hits)


def _exposure(model: Backbone, secret: Secret, longest: int, rng: Generator) -> float:
    """Bits of exposure among `CANDIDATES`, or NaN.

    Exposure is approximated by sampling (Carlini et al. 2019, section 4.3): digits of the candidates are random.
    """
    if sum(map(str.isdigit, secret.secret)) < FEWEST_DIGITS:
        return float("nan")
    texts = [secret.with_secret(each) for each in candidates_of(secret.secret, rng)]
    tokens = model.encode(texts, None, longest, opened=True)
    return exposure(read_tokens(model, tokens).totals().numpy(), 0)


def candidates_of(secret: str, rng: Generator) -> list[str]:
    """The secret and others that differ in their digits, `CANDIDATES` in all and each once."""
    found = {secret: None}
    while len(found) < CANDIDATES:
        digits = iter(rng.integers(10, size=len(secret)))
        found[
            "".join(str(n) if c.isdigit() else c for c, n in zip(secret, digits, strict=True))
        ] = None
    return list(found)


def leaks_of(
    tuned: SecretReadings, base: SecretReadings | None, secrets: Sequence[Secret]
) -> list[Leak]:
    """Scores of extraction and exposure, with the base model's success as the floor."""
    about = {"status": "ok", "goal": Goal.MEMORISATION, "channel": Channel.MODEL}
    leaks = []
    ones = np.ones(len(secrets), np.int64)
    for column, view in enumerate(("greedy", f"in {1 + TRIES} tries")):
        shares = [
            None if one is None else metrics.share(one.printed[:, column].astype(np.int64), ones, 0)
            for one in (tuned, base)
        ]
        leaks.append(
            Leak(
                attack=spec_of(Extraction()),
                view=view,
                metric="extracted",
                success=shares[0],
                floor=shares[1],
                units=len(secrets),
                **about,
            )
        )
    ranked = ~np.isnan(tuned.bits)
    spec = spec_of(CanaryExposure())
    spec = MethodSpec(name=spec.name, params={"candidates": CANDIDATES}, version=spec.version)
    if not ranked.any():
        reason = f"no listed secret has {FEWEST_DIGITS} digits, which random ones could replace"
        return [
            *leaks,
            Leak(attack=spec, status="skipped", reason=reason, goal=Goal.MEMORISATION),
        ]
    fields = {"attack": spec, "ceiling": CEILING, "units": int(ranked.sum()), **about}
    bits = tuned.bits[ranked]
    leaks.append(Leak(metric="exposure", success=mean_bits(bits), **fields))
    if base is not None:
        gained = mean_bits(bits - base.bits[ranked], gained=True)
        leaks.append(Leak(metric=GAINED, success=gained, **fields))
    return leaks


def mean_bits(bits: NDArray[np.float64], gained: bool = False) -> Estimate:
    """The mean of bits [n] with Student's interval over secrets; of one secret the whole range."""
    n, lowest = len(bits), -CEILING if gained else 0.0
    if not n:
        raise LeakboardError("secrets: none can be ranked")
    half = float("inf") if n == 1 else float(stdtrit(n - 1, 0.975)) * bits.std(ddof=1) / np.sqrt(n)
    mean = float(bits.mean())
    return Estimate(
        value=mean,
        low=max(lowest, mean - half),
        high=min(CEILING, mean + half),
        n=n,
        chance=0.0 if gained else expected_unseen(CANDIDATES),
    )
