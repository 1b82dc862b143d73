"""Losses over a long vocabulary: the same as over all of it at once, in no more than a chunk."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny
from torch.nn.functional import cross_entropy, linear

from leakboard.bench.backbones import next_token
from leakboard.bench.backbones.language import LanguageModel, per_token
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.defending.dp_sgd import PrivateGradients

TEXTS = ["call parcel at 3", "the agent will call", "not", "we will call the parcel at 40"]


@pytest.fixture
def three_at_a_time(monkeypatch):
    """Scores of three places are held at once; the largest number of them that ever was is noted."""
    held = []

    def watched(hidden, head):
        scores = linear(hidden, head)
        held.append(scores.numel() // len(head))
        return scores

    def of(words):
        monkeypatch.setattr(next_token, "CHUNK", 3 * 4 * words)
        monkeypatch.setattr(next_token, "linear", watched)
        return held

    return of


@pytest.mark.parametrize("trained", [False, True])
def test_chunks_give_the_losses_and_gradients_of_the_whole(three_at_a_time, trained):
    held = three_at_a_time(50)
    torch.manual_seed(0)
    hidden = torch.randn(7, 4, requires_grad=True)
    head = torch.randn(50, 4, requires_grad=trained)
    ids, weight = torch.randint(50, (7,)), torch.rand(7)
    ids[2] = (hidden[2] @ head.T).argmax()
    expected = cross_entropy(hidden @ head.T, ids, reduction="none")
    wanted = torch.autograd.grad(expected @ weight, [hidden, *([head] if trained else [])])
    loss, hits = next_token.losses(hidden, head, ids)
    found = torch.autograd.grad(loss @ weight, [hidden, *([head] if trained else [])])
    torch.testing.assert_close(loss, expected)
    assert hits.tolist() == ((hidden @ head.T).argmax(1) == ids).tolist()
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    assert max(held) == 3


@pytest.mark.parametrize("tune", ["lora", "full"])
def test_a_model_with_a_long_vocabulary_trains_as_one_with_a_short_one(three_at_a_time, tune):
    base = load_tiny("tiny-gpt2")
    tokens = base.encode(TEXTS, None, 32, opened=True)
    network = LanguageModel(base, TrainSettings(tune=tune)).train()
    torch.manual_seed(3)
    with torch.no_grad():  # a fresh adapter adds nothing, and has no gradient
        for parameter in network.trained():
            parameter.add_(0.05 * torch.randn_like(parameter))
    network.eval()

    def all_of():
        loss, hits, mask = network.losses(tokens)
        loss.sum().backward()
        slopes = [p.grad.clone() for p in network.trained()]
        network.zero_grad()
        return loss.detach(), hits, mask, slopes, per_token(network, tokens)[0].values

    loss, hits, mask, slopes, each = all_of()
    held = three_at_a_time(len(base.embeddings))
    again, hits_again, mask_again, slopes_again, each_again = all_of()
    assert max(held) == 3
    torch.testing.assert_close(again, loss)
    assert torch.equal(hits, hits_again)
    assert torch.equal(mask, mask_again)
    torch.testing.assert_close(each_again, each)
    for one, other in zip(slopes_again, slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_gradients_of_single_examples_are_the_same_in_chunks(three_at_a_time):
    pytest.importorskip("opacus", reason="needs the extra 'dp'")
    base = load_tiny("tiny-gpt2")
    tokens = base.encode(TEXTS, None, 32, opened=True)

    def summed():
        torch.manual_seed(1)
        network = LanguageModel(base, TrainSettings()).train()
        with PrivateGradients(network, 0.01, 0.0, 4.0, None) as private:
            loss, _, _ = network.losses(tokens)
            private.add(loss.sum(1))
            return [total.clone() for total in private.sums]

    whole = summed()
    three_at_a_time(len(base.embeddings))
    for one, other in zip(summed(), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_scores_are_multiplied_in_what_autocast_asks_for(three_at_a_time):
    three_at_a_time(50)
    torch.manual_seed(0)
    hidden, head = torch.randn(7, 4, requires_grad=True), torch.randn(50, 4)
    ids = torch.randint(50, (7,))
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = next_token.losses(hidden, head, ids)
    rounded = linear(hidden.bfloat16(), head.bfloat16()).float()
    torch.testing.assert_close(loss, cross_entropy(rounded, ids, reduction="none"))
    assert loss.dtype == torch.float32
    loss.sum().backward()
    assert hidden.grad.abs().sum() > 0
