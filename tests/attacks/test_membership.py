"""Membership: members are told from others, and DP-SGD hides them while its noise is there."""

from __future__ import annotations

import numpy as np
from cells import load_tiny
from released import audited

from bench.defending import private
from bench.scoring.checks import flags
from bench.tasks.reviews import reviews
from bench.tasks.task import Split, Task
from defenses.dpsgd import DPSGD
from defenses.none import NoDefense


def test_members_of_a_language_model_that_memorises_are_told_from_the_others():
    words = [w for w in load_tiny("tiny-gpt2").tokenizer.get_vocab() if w.isalpha()][:300]
    rng = np.random.default_rng(0)
    texts = tuple(" ".join(rng.choice(words, 8)) for _ in range(100))
    split = Split(texts, np.zeros(100, np.int64))
    task = Task("noise", (), {"train": split, "dev": split.take(np.arange(5))})
    _, leak = audited(NoDefense(), task, tune="full", epochs=10, learning_rate=1e-2)
    assert leak.success.low > 0.9
    assert leak.certificate


def test_dpsgd_without_its_noise_is_caught_by_the_audit_and_with_it_is_not(monkeypatch):
    whole = reviews().splits["train"]
    labels = np.random.default_rng(0).integers(0, 2, 200)  # nothing to learn but the examples
    split = Split(whole.texts[:200], labels)
    task = Task("random", ("a", "b"), {"train": split, "dev": split.take(np.arange(5))})
    settings = {"epochs": 20, "learning_rate": 3e-2}
    sound, leak = audited(DPSGD(epsilon=0.5, clip=10), task, **settings)
    assert leak.epsilon <= 0.5
    assert "claim-violated" not in str(flags([sound]))
    init = private.PrivateGradients.__init__

    def silent(self, module, clip, sigma, *rest):
        init(self, module, clip, 0.0, *rest)

    monkeypatch.setattr(private.PrivateGradients, "__init__", silent)
    broken, leak = audited(DPSGD(epsilon=0.1, clip=10), task, **settings)
    assert leak.epsilon > 0.1
    assert "claim-violated" in str(flags([broken]))
