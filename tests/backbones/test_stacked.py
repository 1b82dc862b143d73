"""One pass for several networks gives each what it would have by itself, and nothing of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from cells import load_tiny
from families import MODELS, WITH_SEGMENTS, saved_family
from torch import Tensor

from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.device import random_state
from leakboard.bench.backbones.draws import Unstackable
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.backbones.network import Network
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.backbones.stacked import Part, Pass, Stacked, weights_of
from leakboard.bench.contracts.settings import TrainSettings

TEXTS = (
    ["the film was good", "bad", "a very bright but slow film and not quite good"],
    ["is dull"],
    ["food was bad", "very slow", "the film was not good but quite bright"],
)
"""Batches of other sizes and lengths."""
FOR_ALL = ("deberta", "deberta-conv")
"""Models with dropout and adapters on relative positions, which belong to no example."""


@dataclass
class Asker:
    """A network in double precision, whose adapters have an effect, with a batch."""

    network: Network
    h: Ragged
    types: Tensor
    seed: int

    def part(self) -> Part:
        torch.manual_seed(self.seed)
        return Part.of(self.network, self.h, self.types)

    def alone(self) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Features, the random state after them, and gradients of h and of the adapters."""
        torch.manual_seed(self.seed)
        found = self.network.features(self.h, self.types)
        after = random_state("cpu")
        wanted = [self.h.values, *weights_of(self.network)]
        return found.detach(), after, list(torch.autograd.grad(found, wanted, slope(found)))


def slope(features: Tensor) -> Tensor:
    """Some gradient at features."""
    return torch.linspace(-1, 2, features.numel(), dtype=features.dtype).view_as(features)


def askers(
    backbone: Backbone, cut: int = 0, pairs: bool = False, exact: bool = True
) -> list[Asker]:
    found = []
    for seed, texts in enumerate(TEXTS):
        torch.manual_seed(seed)
        network = Network(backbone, cut, 2, TrainSettings(lora_rank=3), slice(cut, None)).train()
        network = network.double() if exact else network
        for weight in weights_of(network):
            torch.nn.init.normal_(weight, std=0.3)
        tokens = backbone.encode(texts, texts if pairs else None, 32)
        with torch.no_grad():
            words = tokens.ids.with_values(network.embeddings(tokens.ids.values))
            h = network.eval().bottom(words, tokens.types)
        network.train()
        found.append(
            Asker(network, h.with_values(h.values.requires_grad_()), tokens.types, 100 + seed)
        )
    return found


def passed(those: Sequence[Asker]) -> Pass:
    return Stacked(those[0].network).passed([one.part() for one in those])


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Backbone]:
    return lambda name: load_backbone(str(saved_family(name, tmp_path_factory.mktemp(name))))


@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("name", MODELS)
def test_features_gradients_and_dropout_are_those_of_each_network_alone(load, name, cut, training):
    those = askers(load(name), cut, name in WITH_SEGMENTS)
    for one in those:
        one.network.train(training)
    if name in FOR_ALL:
        what = "dropout" if training else "an adapter"
        with pytest.raises(Unstackable, match=f"{what} on a tensor of shape"):
            passed(those)
        return
    made = passed(those)
    back = made.backward({k: slope(made.features(k)) for k in range(len(those))})
    for k, one in enumerate(those):
        features, after, gradients = one.alone()
        torch.testing.assert_close(made.features(k), features, rtol=1e-12, atol=1e-12)
        assert torch.equal(made.states[k], after)
        for got, expected in zip(back[k], gradients, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


def test_whoever_does_not_ask_back_changes_nothing_for_the_others():
    those = askers(load_tiny("tiny-bert"))
    made = passed(those)
    gradients = {k: slope(made.features(k)) for k in range(len(those))}
    every, one = made.backward(gradients), made.backward({2: gradients[2]})
    assert one.keys() == {2}
    assert all(map(torch.equal, one[2], every[2]))


@pytest.mark.parametrize("sick", [torch.nan, torch.inf])
def test_what_is_not_finite_in_one_network_reaches_no_other(sick):
    those = askers(load_tiny("tiny-bert"))
    healthy = passed(those)
    for weight in weights_of(those[1].network):
        weight.data.fill_(sick)
    made = passed(those)
    assert not made.features(1).isfinite().any()
    gradients = {k: slope(made.features(k)) for k in range(len(those))}
    gradients[1] = gradients[1] * sick
    found, expected = made.backward(gradients), healthy.backward({0: gradients[0], 2: gradients[2]})
    for k in (0, 2):
        assert torch.equal(made.features(k), healthy.features(k))
        assert all(map(torch.equal, found[k], expected[k]))


def test_a_pass_is_in_the_precision_in_which_it_was_asked_for():
    those = askers(load_tiny("tiny-bert"), exact=False)
    full = passed(those)
    with torch.autocast("cpu", torch.bfloat16):
        parts = [one.part() for one in those]
        alone = [one.alone()[0] for one in those]
    short = Stacked(those[0].network).passed(parts)
    assert parts[0].kind != those[0].part().kind
    for k, expected in enumerate(alone):
        assert not torch.equal(short.features(k), full.features(k))
        torch.testing.assert_close(short.features(k), expected, rtol=0, atol=2e-2)


def test_networks_share_a_pass_only_where_shapes_cut_and_mode_agree():
    backbone = load_tiny("tiny-bert")
    one, other, _ = askers(backbone)
    assert one.part().kind == other.part().kind
    kinds = {one.part().kind, askers(backbone, cut=1)[0].part().kind}
    with torch.no_grad():
        kinds.add(one.part().kind)
    one.network.eval()
    kinds.add(one.part().kind)
    one.network = Network(backbone, 0, 2, TrainSettings(lora_rank=4), slice(None)).double()
    kinds.add(one.part().kind)
    one.network = Network(backbone, 0, 2, TrainSettings(lora_rank=3, lora_alpha=1), slice(None))
    one.network.double().eval()
    kinds.add(one.part().kind)
    one.network = Network(backbone, 0, 2, TrainSettings(), slice(0, 0)).double()
    kinds.add(one.part().kind)
    assert len(kinds) == 7


def test_what_is_drawn_by_other_means_than_dropout_is_not_stacked(monkeypatch):
    those = askers(load_tiny("tiny-bert"))
    family = type(those[0].network.family)
    monkeypatch.setattr(family, "leave", lambda self, model, x: x + 0 * torch.rand(1))
    with pytest.raises(Unstackable, match="by other means than dropout"):
        passed(those)
