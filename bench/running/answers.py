"""What a tuned language model answers to prompts: greedily, a token at a time, as its customer asks for it."""

from __future__ import annotations

import torch

from leakboard.bench.backbones import Backbone, Ragged, Tokens, by_length
from leakboard.bench.exchange import Tuned

BATCH = 32
"""Prompts that are answered together."""


def answers(tuned: Tuned, tokens: Tokens, split: str, backbone: Backbone) -> list[str]:
    """The answer to each prompt, up to the token that ends a text; no longer than the longest right one.

    Each token is asked for with all that stands before it, so what crosses the wire is counted each time.
    It is nothing that training sends, and none of it is recorded: a customer who uses the model sends a prompt once.

    Args:
        tokens: prompts with the right answers, of which only the lengths are looked at.
        split: of the texts.
    """
    prompts, right = [], 0
    for row in range(len(tokens)):
        one = tokens.take(torch.tensor([row]))
        asked = one.types == 0
        right = max(right, int((~asked).sum()))
        prompts.append((one.ids.values[asked].tolist(), one.special[asked].tolist()))
    end, most = backbone.tokenizer.eos_token_id, backbone.family.positions(backbone.model)
    written: list[list[int]] = [[] for _ in prompts]
    going = list(range(len(prompts)))
    for _ in range(right):
        lengths = torch.tensor([len(prompts[i][0]) for i in going])
        for batch in by_length(lengths, BATCH) if going else ():
            rows = [going[i] for i in batch.tolist()]
            told = _tokens([prompts[i] for i in rows], [written[i] for i in rows])
            words = tuned.next_words(told, torch.tensor(rows), f"{split}, answered")
            for i, word in zip(rows, words.tolist(), strict=True):
                written[i].append(word)
        going = [
            i
            for i in going
            if written[i][-1] != end and len(prompts[i][0]) + len(written[i]) != most
        ]
    return [backbone.tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in written]


def _tokens(prompts: list[tuple[list[int], list[bool]]], written: list[list[int]]) -> Tokens:
    """Prompts with what is written behind each so far."""
    ids, types, special = [], list[int](), list[bool]()
    for (own, added), more in zip(prompts, written, strict=True):
        ids.append([*own, *more])
        types += [0] * len(own) + [1] * len(more)
        special += [*added, *(False for _ in more)]
    return Tokens(Ragged.of(ids), torch.tensor(types), torch.tensor(special))
