"""What stands in front of a text: a prompt is words, and a frozen model stays as it is."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny, session_of

from leakboard.bench.backbones.prompted import Prompted
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.defenses.rapt import RAPT

IDS = Ragged(torch.tensor([2, 9, 10, 3, 2, 11, 3]), torch.tensor([4, 3]))
TYPES = torch.zeros(7, dtype=torch.long)


def prompted(kind: str, length: int, model: str = "tiny-bert") -> Prompted:
    session, _ = session_of(RAPT(), model=model)
    return Prompted(session.network(adapted=False), kind, length).eval()


def test_a_prompt_of_word_embeddings_is_those_words_in_front_of_the_text():
    found, words = prompted("prompt", 2), torch.tensor([20, 21])
    embeddings = found.network.embeddings.weight
    found.front.data.copy_(embeddings[words])
    out = found(IDS, TYPES)
    model = load_tiny("tiny-bert").model
    for row, text in enumerate(torch.split(IDS.values, IDS.lengths.tolist())):
        whole = model(input_ids=torch.cat([words, text])[None]).last_hidden_state[0]
        own = out[IDS.positions(torch.tensor([row]))]
        torch.testing.assert_close(own, whole[2:], atol=1e-5, rtol=1e-5)


def test_a_prompt_starts_as_words_and_a_prefix_near_nothing():
    prompt, prefix = prompted("prompt", 5), prompted("prefix", 5)
    distances = torch.cdist(prompt.front, prompt.network.embeddings.weight)
    assert (distances.min(1).values < 1e-3).all()
    assert prefix.front.shape == (2, 2, 4, 5, 8)
    assert float(prefix.front.detach().std()) == pytest.approx(0.02, rel=0.1)


def test_only_what_stands_in_front_and_the_head_can_be_trained():
    found = prompted("prefix", 3)
    names = {name for name, p in found.named_parameters() if p.requires_grad}
    assert names == {"front", "network.head.weight", "network.head.bias"}


def test_a_prefix_takes_no_position_and_a_prompt_takes_its_length():
    assert prompted("prefix", 100).room == 256
    assert prompted("prompt", 100).room == 156
    with pytest.raises(LeakboardError, match="room for 3 tokens after a prompt of 253, but a text"):
        prompted("prompt", 253)(IDS, TYPES)


def test_families_without_a_prefix_are_named_with_what_they_take():
    with pytest.raises(
        LeakboardError, match="a prefix is not supported for the architecture 'gpt2'; use 'prompt'"
    ):
        prompted("prefix", 3, "tiny-gpt2")
    assert prompted("prompt", 3, "tiny-gpt2")(IDS, TYPES).shape == (7, 32)
