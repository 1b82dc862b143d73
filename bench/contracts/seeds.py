"""One seed per axis, so that two cells of a curve differ by one thing only; and what no attacker may know."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Seeds:
    """Independent seeds derived from the seed of a cell.

    That seed is public. The customer's secrets therefore come from a secret of who runs the cell, too:
    with the same one a run can be repeated, and without it nobody can derive them.

    Attributes:
        data: which examples are drawn under a limit, and which are recorded.
        initialisation: adapters and head.
        order: order of the batches, and dropout.
        planting: secret; the digits of canaries, and the coins of what is audited.
        mechanism: secret; the noise of the defense, its mixing weights, its batches.
        attack: whatever an attack draws.
    """

    data: int
    initialisation: int
    order: int
    planting: int
    mechanism: int
    attack: int

    @classmethod
    def of(cls, seed: int, shadow: int | None = None, secret: str = "") -> Seeds:
        """Of a cell, or of a model that an attacker trains on the same data: the rest is its own.

        Args:
            secret: of who runs it; "" derives all from the public seed, as records without a
                fingerprint of a secret were made.
        """
        own = "" if shadow is None else f" of shadow {shadow}"
        mechanism = "mechanism" + own
        return cls(
            data=_derive(seed, "data"),
            initialisation=_derive(seed, "initialisation" + own),
            order=_derive(seed, "order" + own),
            planting=_hidden(secret, seed, "planting") if secret else _derive(seed, "data"),
            mechanism=_hidden(secret, seed, mechanism) if secret else _derive(seed, mechanism),
            attack=_derive(seed, "attack" + own),
        )


def fingerprint(secret: str) -> str | None:
    """What a record tells of a secret: which one it was, and nothing about it. None for ""."""
    if not secret:
        return None
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"fingerprint").hexdigest()


def _derive(seed: int, axis: str) -> int:
    # The axis enters by its name, so that adding an axis leaves the others as they were.
    sequence = np.random.SeedSequence([seed, zlib.crc32(axis.encode())])
    return int(sequence.generate_state(1, np.uint32)[0])


def _hidden(secret: str, seed: int, axis: str) -> int:
    """128 bits, so that trying all seeds against what a vendor received is hopeless."""
    key = hashlib.sha256(secret.encode()).digest()
    return int.from_bytes(
        hashlib.blake2b(f"{axis} of {seed}".encode(), key=key, digest_size=16).digest()
    )
