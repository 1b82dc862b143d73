"""Suite files."""

from __future__ import annotations

import json
import random

from hostile.values import changed, flipped

SUITE = {
    "name": "mine",
    "description": "what it is",
    "task": ["reviews", {"name": "own", "path": {"train": "a.tsv", "dev": "b.tsv"}, "attributes": ["g"]}],
    "model": ["tiny-bert", "m"],
    "cut": [0, 1],
    "seeds": [0, 1],
    "limit": 100,
    "train": {"epochs": 1, "learning_rate": 1e-3, "tune": "lora"},
    "record": {"examples": 50},
    "plant": {"canaries": "My ID is {digits}", "copies": [1, 10], "audit": 10},
    "defenses": ["none", {"sap": {"eta": ["none", 75, 50], "bottom": "frozen"}}, {"p3eft": {"weight": [0.1, 1]}}],
    "attacks": ["all", {"aia-mlp": {"labelled": [0.1, 0.5]}}],
    "paper": {"paper": "SAP", "artefact": ["Table 3"], "task": {"reviews": "x"}},
}  # fmt: skip
FRAGMENTS = [
    "&a [1, 2]", "*a", "!!python/object:os.system {}", "!!binary aGk=", "!!set {a, b}", "? [a]\n: b", "<<: {a: b}",
    "[" * 100_000, "{a: " * 5_000, "- " * 5_000, "\n---\n", "%YAML 1.2\n---\n", "\t", '"\\UFFFFFFFF"', '"\\uD800"',
    '"\\0"', "|\n  a\n  b", "0x10", "1_000", "1:30", "=", "~", "''", "9" * 6000, "a: b: c", "#", "\x85", "\ufeff",
    "&a [&b [*a, *b], *a]",
    *("\n".join([f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 10) if i else '1, 2'}]" for i in range(n)]) for n in (3, 7)),
]  # fmt: skip


def drawn(seed: int) -> bytes:
    """A suite file."""
    rng = random.Random(f"suite {seed}")
    kept = {
        key: value
        for key, value in SUITE.items()
        if key in ("name", "task", "defenses") or rng.random() < 0.5
    }
    kind = rng.randrange(5)
    if kind == 0:  # a grid or a list that is far too long
        many = list(range(1, rng.choice([50, 500, 3000])))
        kept["defenses"] = ["none", {"sap": {"eta": many, "bottom_learning_rate": many}}][
            rng.randrange(2) :
        ]
        kept["seeds"] = many
    else:
        kept = changed(rng, kept, rng.choice([0, 1, 1, 2, 5]))
    text = json.dumps(kept, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
    for _ in range(rng.choice([0, 0, 1, 2])):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(FRAGMENTS) + text[at:]
    raw = text.encode("utf-8", "surrogatepass")
    return flipped(rng, raw) if rng.random() < 0.15 else raw
