"""sipit: exact inversion behind causal blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from causal import TEXTS
from cells import leak_of, load_tiny, make, run
from torch.nn.functional import embedding

from leakboard.attacks.sipit import Prefix, SipIt
from leakboard.bench.attacking.discriminant import Discriminant
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.methods.method import Conditions
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.sap import SAP

SENT = Channel.REPRESENTATIONS
TALK = {"task": "dialogues", "limit": 12, "train": {"epochs": 1, "max_length": 24}}


def transcript(base, tokens, cut, eta=None, rounds=1):
    rng, messages = np.random.default_rng(3), []
    for number in range(rounds):
        vectors = SAP(eta=eta).simulate(base, tokens, cut, rng).values.numpy()
        own = np.arange(len(tokens)), vectors, tokens.lengths.numpy()
        messages.append(Message(SENT, "train", number, "customer", "vendor", 0, *own))
    return Transcript(tuple(messages))


def share(attack, base, cut, **sent):
    """Share of the tokens that are right, the added ones aside."""
    tokens = base.encode(TEXTS, None, 32, opened=True)
    knowledge = Knowledge(0, "cpu", cut=cut, base=base)
    seen = transcript(base, tokens, cut, **sent)
    (guess,) = attack.guess(seen, knowledge, np.random.default_rng(0))
    right = torch.from_numpy(guess.values) == tokens.ids.values
    return float(right[~tokens.special].float().mean())


@pytest.mark.parametrize("model", ["tiny-gpt2", "tiny-llama"])
@pytest.mark.parametrize("cut", [0, 1])
def test_every_token_is_found_at_every_cut(model, cut):
    assert share(SipIt(), load_tiny(model), cut) == 1


def test_permuted_vectors_are_put_in_order():
    base = load_tiny("tiny-gpt2")
    tokens = base.encode(TEXTS, None, 32, opened=True)
    (message,) = transcript(base, tokens, 1).messages
    rng = np.random.default_rng(1)
    parts = [
        rng.permutation(own) for own in np.split(message.values, tokens.lengths.cumsum(0)[:-1])
    ]
    seen = Transcript((replace(message, values=np.concatenate(parts)),))
    shares = []
    for order in ("any", "sent"):
        knowledge = Knowledge(0, "cpu", cut=1, base=base)
        (guess,) = SipIt(order=order).guess(seen, knowledge, np.random.default_rng(0))
        right = torch.from_numpy(guess.values) == tokens.ids.values
        shares.append(float(right[~tokens.special].float().mean()))
    assert shares[0] == 1
    assert shares[1] < 0.5


@pytest.mark.parametrize("model", ["tiny-gpt2", "tiny-llama"])
def test_outputs_behind_a_prefix_are_those_of_the_bottom(model):
    base = load_tiny(model)
    ids = base.encode(TEXTS[:1], None, 32, opened=True).ids
    words, last = ids.values[:-1].tolist(), torch.arange(3, 8)
    prefix = Prefix(base, 2)
    for word in words:
        prefix = prefix.extended(word)
    found, _ = prefix.outputs(last)
    for output, word in zip(found, last, strict=True):
        whole = ids.with_values(torch.tensor([*words, int(word)]))
        vectors = whole.with_values(embedding(whole.values, base.embeddings))
        expected = base.bottom(vectors, torch.zeros_like(whole.values), 2).values[-1]
        torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


def test_every_token_is_found_whatever_the_order(monkeypatch):
    for name in ("scores", "scores_after"):
        monkeypatch.setattr(Discriminant, name, lambda self, x, *told: zeros(self, x))

    def zeros(self, received):
        return (
            torch.zeros(*received.lengths, len(self.codes))
            if hasattr(received, "lengths")
            else torch.zeros(len(self.codes))
        )

    assert share(SipIt(), load_tiny("tiny-gpt2"), 1) == 1


def test_a_match_ends_the_search(monkeypatch):
    base, sizes = load_tiny("tiny-gpt2"), []
    outputs = Prefix.outputs

    def counted(self, words):
        sizes.append(len(words))
        return outputs(self, words)

    monkeypatch.setattr(Prefix, "outputs", counted)
    assert share(SipIt(), base, 1) == 1
    assert np.mean(sizes) < 12


def test_noise_is_searched_by_likelihood_and_repeated_messages_add_up():
    base, noise = load_tiny("tiny-gpt2"), {"eta": 200.0}
    one, eight = (share(SipIt(), base, 1, rounds=r, **noise) for r in (1, 8))
    assert 0.1 < one < 0.9
    assert eight > one + 0.2


def test_cells_are_read_without_noise_and_not_in_noise(tmp_path):
    fields = TALK | {"model": "tiny-gpt2", "cut": 1, "attacks": (SipIt(candidates=8),)}
    clear, hidden = run(tmp_path, SAP(eta=None), Blackout(), **fields)
    for view in ("train", "dev"):
        found = leak_of(clear, "sipit", view)
        assert found.success.value > 0.99
        assert advantage_low(found) >= NEEDED
    nothing = leak_of(hidden, "sipit").success
    assert nothing.low <= nothing.chance


def test_models_that_are_not_causal_are_skipped_with_the_reason():
    plan = make(SAP(), attacks=(SipIt(),), model="tiny-bert", cut=1)
    assert "not causal" in str(plan.cells[0].pairings[0].skip_reasons)
    assert SipIt().skip(Conditions(causal=None)) is None
    known = Knowledge(2, "cpu", cut=1, base=load_tiny("tiny-bert"))
    with pytest.raises(Silent, match="not causal"):
        SipIt().guess(Transcript(), known, np.random.default_rng(0))
