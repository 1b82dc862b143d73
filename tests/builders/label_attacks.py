"""Builders for tests of label attacks: rows with labels in them, and how well an attack finds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.running.attacks import attack_guesses
from leakboard.bench.scoring.moments import Trial, permuted, scored


def sent(x, moment=0, part=0, channel=Channel.ACTIVATIONS, rows=None, recipient="vendor", step=0):
    rows = np.arange(len(x)) if rows is None else rows
    x = np.asarray(x, np.float32)
    return Message(channel, "train", 0, "vendor", recipient, part, rows, x, None, step, moment)


def looks_of(attack, seen, labels, classes=2, **knowledge):
    """What an attack guesses, as it is scored; every guess is about every row."""
    known = Knowledge(classes=classes, device="cpu", **knowledge)
    guesses = attack_guesses(attack, seen, known, np.random.default_rng(0), labels)
    null = permuted(labels)
    for guess in guesses:
        assert sorted(guess.rows) == sorted(set(guess.rows))
        assert np.isfinite(guess.values).all()
    return [
        Trial(g, g.moment or 0, np.asarray(g.values), labels[g.rows], null[:, g.rows])
        for g in guesses
    ]


def success(attack, seen, labels, channel=None, **more):
    """Success at the worst moment."""
    looks = looks_of(attack, seen, labels, **more)
    worst, _ = scored([k for k in looks if channel in (None, k.guess.channel)], 2)
    return worst["success"]


def planted(kind, n=240, d=12, classes=2):
    """Rows in which labels show as that kind of structure."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    x = rng.standard_normal((n, d))
    if kind == "length":
        return x * (1 + 2 * y)[:, None], y
    return x + 6 * np.eye(d)[y], y


def split(seen, m, servers=1, noise=1000.0):
    """The transcript with each gradient sent as m vectors, of `noise` times its variance."""
    rng, messages = np.random.default_rng(0), []
    for message in seen.messages:
        if message.channel != Channel.GRADIENTS:
            messages.append(message)
        elif message.moment is not None:
            g = message.values.astype(float)
            alpha = rng.uniform(0.5, 2, m) * rng.choice([-1, 1], m)
            drawn = rng.standard_normal((m - 1, *g.shape)) * np.sqrt(noise) * g.std()
            last = (g - np.tensordot(alpha[:-1], drawn, 1)) / alpha[-1]
            for j, vector in enumerate([*drawn, last]):
                who = f"server-{j}" if servers > 1 else "vendor"
                values = vector.astype(np.float32)
                messages.append(replace(message, part=j, values=values, recipient=who))
    return Transcript(tuple(messages))
