"""Perplexity and utility of a language model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.bench.backbones.language import LanguageModel, per_token
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.exchange.model_release import losses
from leakboard.bench.scoring.perplexity import next_token_fields
from leakboard.bench.tasks.task import Span, Split


def test_secrets_do_not_count_for_utility_and_all_tokens_for_perplexity():
    backbone = load_tiny("tiny-gpt2")
    network = LanguageModel(backbone, TrainSettings())
    texts = ("call parcel at 3", "call refund at 40")
    tokens = backbone.encode(texts, None, 16, opened=True)
    open_ = Split(texts, np.zeros(2, np.int64))
    marked = dataclasses.replace(open_, secrets=((Span(5, 11, "name"),), ()))
    told = per_token(network, tokens)
    one, other = (next_token_fields(*told, backbone, s, tokens, 16) for s in (open_, marked))
    assert sum(one["predictions"]["tokens"]) == sum(other["predictions"]["tokens"]) + 1
    assert one["measures"] == other["measures"]
    means = losses(network, tokens, torch.zeros(2)).detach()
    total = float((means * (tokens.lengths - 1)).sum())
    by_token = one["measures"]["perplexity per token"].value
    assert by_token == pytest.approx(np.exp(total / int((tokens.lengths - 1).sum())), rel=1e-4)
    per_word = one["measures"]["perplexity per word"].value
    assert per_word == pytest.approx(np.exp(total / 8), rel=1e-4)
