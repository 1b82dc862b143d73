"""Where the second text of a pair begins can be told from ids that were sent."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta"])
@pytest.mark.parametrize("pairs", [None, ["a second text", "x", "and one more"]])
def test_segments_told_by_ids_are_those_of_the_tokeniser(name, pairs):
    backbone = load_tiny(name)
    tokens = backbone.encode(["a text", "another one", "b"], pairs, 32)
    assert torch.equal(backbone.segments(tokens.ids), tokens.types)
