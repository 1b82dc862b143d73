"""Logits of a causal model from its parts, and whether they are those of the whole."""

from __future__ import annotations

import torch

TEXTS = ["Customer: my order is KP-904817.", "Agent: thanks", "Call 12 on May 3, 2024, please."]


def logits_of(backbone, tokens):
    """Logits [T, V] from the parts: bottom, top and output layer."""
    h = tokens.ids.with_values(backbone.embeddings[tokens.ids.values]).padded()
    mask = tokens.ids.mask()
    types = tokens.ids.with_values(tokens.types).padded()
    return backbone.family.top(backbone.model, h, mask, types, 0)[mask] @ backbone.head.T


def agrees(backbone, whole):
    tokens = backbone.encode(TEXTS, None, 64, opened=True)
    assert len(set(tokens.lengths.tolist())) > 1
    rows = [tokens.take(torch.tensor([row])).ids.values[None] for row in range(len(tokens))]
    expected = torch.cat([whole(input_ids=ids.long()).logits[0] for ids in rows])
    torch.testing.assert_close(logits_of(backbone, tokens), expected, atol=2e-5, rtol=1e-5)
