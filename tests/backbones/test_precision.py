"""Frozen weights in bfloat16: what autocast computes, cast once, and float32 as it was."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from leakboard.bench.backbones import precision
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.backbones.precision import CachedCastLinear, cache_casts
from leakboard.bench.contracts.cell import TrainSettings


@pytest.fixture
def casts(monkeypatch):
    """The shapes of what is cast anew."""
    made, original = [], torch.Tensor.to

    def noted(tensor, *given, **named):
        if tensor.dim() == 2 and given == (torch.bfloat16,):
            made.append(tuple(tensor.shape))
        return original(tensor, *given, **named)

    monkeypatch.setattr(torch.Tensor, "to", noted)
    return made


def layer_of(trained=False):
    torch.manual_seed(0)
    return nn.Linear(6, 5).requires_grad_(trained)


def test_a_frozen_layer_computes_what_autocast_would_and_is_cast_once(casts):
    plain, x = layer_of(), torch.randn(3, 6, requires_grad=True)
    kept = copy.deepcopy(plain)
    cache_casts(nn.ModuleList([kept]))
    for _ in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            one, other = plain(x), kept(x)
        assert other.dtype == torch.bfloat16
        assert torch.equal(one, other)
        same = [torch.autograd.grad(y.float().sum(), x)[0] for y in (one, other)]
        assert torch.equal(*same)
    assert casts == [(5, 6)]
    assert torch.equal(plain(x), kept(x))
    assert kept.state_dict().keys() == plain.state_dict().keys()


def test_a_weight_that_changes_is_cast_again_and_a_trained_one_is_never_kept():
    kept = layer_of()
    kept.bias.data.zero_()
    cache_casts(nn.ModuleList([kept]))
    x = torch.randn(3, 6)
    with torch.autocast("cpu", torch.bfloat16):
        before = kept(x)
        with torch.no_grad():
            kept.weight.mul_(2)
        assert torch.equal(kept(x), 2 * before)
        moved = copy.deepcopy(kept)
        moved.weight.data = torch.zeros(5, 6)
        assert not moved(x).any()
    trained = layer_of(trained=True)
    cache_casts(nn.ModuleList([trained]))
    assert type(trained) is nn.Linear
    assert precision.cast_weight(trained.weight, torch.bfloat16).requires_grad


def test_what_was_cast_where_nothing_is_learnt_is_used_where_something_is():
    kept = layer_of()
    cache_casts(nn.ModuleList([kept]))
    x = torch.randn(3, 6, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        with torch.inference_mode():
            kept(x)
        # Not of x itself: torch 2.6 keeps the cast of a leaf, with or without gradients.
        kept(x * 1).float().sum().backward()
    assert x.grad is not None


def test_a_loaded_model_casts_its_layers_once_and_a_copy_of_it_those_that_are_not_trained():
    base = load_backbone("tiny-llama")

    def kept(model):
        return [layer for layer in model.modules() if isinstance(layer, CachedCastLinear)]

    assert len(kept(base.model)) == 14
    tuned = LanguageModel(base, TrainSettings())
    assert len(kept(tuned)) == 14
    assert not any(layer.weight.requires_grad for layer in kept(tuned))
    assert {p.dtype for p in tuned.trained()} == {torch.float32}
