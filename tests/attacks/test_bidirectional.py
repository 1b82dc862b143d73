"""Both directions at once: more than either alone, nothing in noise, and answers apart from prompts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import leak_of, load_tiny, run
from torch.nn.functional import cross_entropy

from leakboard.attacks.bidirectional import Bidirectional, gradients, shift_right
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.token_gradient import TokenGradient
from leakboard.bench.backbones.labelling import NO_LABEL, next_tokens
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.bench.tasks.dialogues import dialogues
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

BASE = load_tiny("tiny-gpt2")
TALK = {
    "task": "dialogues",
    "model": "tiny-gpt2",
    "limit": 24,
    "train": {"epochs": 2, "batch_size": 8},
}
READ = Bidirectional(sentences=160)


def encoded(split, n):
    return BASE.encode(dialogues().split(split).texts[:n], None, 48, opened=True)


def heard(tokens, mechanism, secret, shown=frozenset({"front", "back"})):
    """What crosses the wire about texts while the customer's output layer is `secret` [V, d]."""
    rng, lengths = np.random.default_rng(1), tokens.lengths.numpy()
    front = mechanism.simulate(BASE, tokens, 0, rng)
    with torch.no_grad():
        h = BASE.family.hidden(BASE.model, front, tokens.types, 0)
    h.requires_grad_()
    (g,) = torch.autograd.grad(cross_entropy(h @ secret.T, next_tokens(tokens)), h)
    sent = {Channel.ACTIVATIONS: h.detach(), Channel.GRADIENTS: g}
    if "front" in shown:
        sent[Channel.REPRESENTATIONS] = front.values
    if "back" not in shown:
        sent[Channel.GRADIENTS] = torch.zeros_like(g)
    rows = np.arange(len(tokens))
    return Transcript(
        tuple(
            Message(channel, "train", 0, "customer", "vendor", 0, rows, values.numpy(), lengths)
            for channel, values in sent.items()
        )
    )


def share(guess, tokens):
    """Of the words that are read, by their place."""
    assert guess.goal == Goal.INVERSION
    real = ~tokens.special.numpy()
    return float((np.asarray(guess.values) == tokens.ids.values.numpy())[real].mean())


def test_where_noise_hides_one_direction_and_a_secret_layer_the_other_both_read_more_than_either():
    tokens, public = encoded("train", 24), Auxiliary(encoded("auxiliary", 200), np.zeros(0))
    torch.manual_seed(5)
    head, (v, d) = BASE.output_layer(), BASE.output_layer().shape
    change = torch.randn(v, 8) @ torch.randn(8, d)
    secret, mechanism = head + 1.5 * head.norm() / change.norm() * change, SAP(eta=180.0)
    knowledge = Knowledge(0, "cpu", base=BASE, mechanism=mechanism, auxiliary=public)

    def read(*shown):
        seen = heard(tokens, mechanism, secret, frozenset(shown))
        attack = Bidirectional(sentences=200, epochs=2, secrecy=2.0)
        return share(attack.guess(seen, knowledge, np.random.default_rng(0))[1], tokens)

    both, front, back = read("front", "back"), read("front"), read("back")
    seen, rng = heard(tokens, mechanism, secret), np.random.default_rng(0)
    plain = share(TokenGradient().guess(seen, knowledge, rng)[1], tokens)
    nearest = NearestNeighbour().guess(seen, knowledge, rng)[0]
    near = float(
        (nearest.values[:, 0] == tokens.ids.values.numpy())[~tokens.special.numpy()].mean()
    )
    assert both > max(front, back, plain, near) + 0.05, (both, front, back, plain, near)


def test_a_private_layer_that_began_as_the_public_one_protects_nothing(tmp_path):
    defenses = SAP(eta=None, head="private"), SAP(eta=50.0, head="private")
    records = run(tmp_path, *defenses, attacks=(READ, TokenGradient()), **TALK)
    for record in records:
        for goal in ("label", "inversion"):
            leak = leak_of(record, "bidirectional", goal=goal)
            assert leak.success.value >= 0.97
            assert advantage_low(leak) >= NEEDED
            assert leak.channel == "gradients"
        assert leak_of(record, "token-gradient", goal="label").success.value >= 0.97


def test_noise_tells_nothing_and_one_direction_is_left_to_others(tmp_path):
    dark, vendor, split = run(
        tmp_path, Blackout(), SAP(head="vendor"), P3EFT(weight=0), attacks=(READ,), **TALK
    )
    for goal in ("label", "inversion"):
        found = leak_of(dark, "bidirectional", goal=goal).success
        assert found.low <= found.chance
    assert {leak.status for leak in vendor.leaks} == {"skipped"}
    assert "reads only gradients" in vendor.leaks[0].reason
    assert {leak.status for leak in split.leaks} == {"skipped"}
    assert "several vectors stand for each gradient" in split.leaks[0].reason


def test_without_representations_the_gradients_are_read_alone(tmp_path):
    (record,) = run(tmp_path, NoDefense(head="customer"), attacks=(READ,), **TALK)
    assert leak_of(record, "bidirectional", goal="label").success.value >= 0.97


def test_a_prompt_is_read_as_it_goes_up_where_no_gradient_names_it(tmp_path):
    talk = TALK | {"task": "replies"}
    (record,) = run(tmp_path, SAP(eta=None, head="private"), attacks=(READ,), **talk)
    for goal in ("label", "inversion"):
        assert leak_of(record, "bidirectional", goal=goal).success.value >= 0.97


@pytest.mark.parametrize("secrecy", [0.0, 0.7])
def test_what_an_imitated_layer_returns_is_the_gradient_of_its_loss(secrecy):
    torch.manual_seed(3)
    head, h = torch.randn(40, 6), torch.randn(9, 6, requires_grad=True)
    labels = torch.randint(40, (9,))
    labels[[2, 8]] = NO_LABEL
    state = torch.random.get_rng_state()
    found = gradients(h.detach(), labels, head, secrecy)
    torch.random.set_rng_state(state)
    change = torch.randn(40, 8) @ torch.randn(6, 8).T
    own = head + secrecy * head.norm() * change / change.norm()
    loss = cross_entropy(h @ own.T, labels, reduction="sum", ignore_index=NO_LABEL)
    (expected,) = torch.autograd.grad(loss, h)
    torch.testing.assert_close(found, expected)


def test_a_word_belongs_to_the_gradient_at_the_place_before_it():
    values, lengths = torch.arange(1.0, 6.0)[:, None], torch.tensor([3, 2])
    assert shift_right(values, lengths)[:, 0].tolist() == [0, 1, 2, 0, 4]
