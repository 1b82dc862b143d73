"""Threat models: what an attack guesses, what it reads and what it must know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from leakboard.bench.contracts.channels import Channel


class Goal(StrEnum):
    """What an attack guesses."""

    INVERSION = "inversion"
    ATTRIBUTE = "attribute"
    LABEL = "label"
    MEMORISATION = "memorisation"
    MEMBERSHIP = "membership"
    MODEL = "model"
    """The vendor's: what the customer predicts without it, with what it was handed. The attacker is the
    customer, and what is protected is the vendor's."""


class Knows(StrEnum):
    """What an attack must be told besides the transcript."""

    BASE_WEIGHTS = "base weights"
    MECHANISM = "mechanism"
    AUXILIARY_TEXT = "auxiliary text"
    LABELLED_SHARE = "labelled share"
    LABELS = "labels of other folds"
    COLLUSION = "collusion"
    SHADOWS = "shadow models"
    """Models that the attacker trains like the target, on examples of its choice."""
    HELD = "what the customer holds"
    """Its own predictions, with what it was handed and tuned, after the vendor has gone."""
    PREFIXES = "beginnings of training texts"
    """What stands in training texts before personal data that are looked for."""
    QUERIES = "queries"
    """What the customer's side would send for texts of the attacker's choice, without its weights."""


@dataclass(frozen=True)
class ThreatModel:
    """What an attack guesses, what it reads and what it must know."""

    goals: frozenset[Goal]
    reads: frozenset[Channel]
    """Any one of these channels is enough; an empty set reads nothing and applies everywhere."""
    knows: frozenset[Knows] = frozenset()
