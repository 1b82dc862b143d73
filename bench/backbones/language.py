"""Language models: trained on texts, judged by how well they predict the tokens that are no secret."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from bench.backbones import lora
from bench.backbones.backbone import Backbone
from bench.backbones.batches import by_length
from bench.backbones.ragged import Ragged, Tokens
from bench.contracts import LeakboardError, TrainSettings
from bench.tasks import Span


class LanguageModel(nn.Module):
    """A copy of a causal backbone that can be trained: LoRA in the blocks, or all of it.

    Raises:
        LeakboardError: the backbone predicts no tokens.
    """

    def __init__(self, backbone: Backbone, settings: TrainSettings) -> None:
        super().__init__()
        if backbone.head is None:
            raise LeakboardError(
                f"model '{backbone.name}' predicts no next token; a task of language modelling needs "
                "a causal model (GPT-2, Llama, Mistral, Qwen, Gemma 3): dialogue-gpt, or a folder or hub id of one"
            )
        self.family = backbone.family
        self.encoder = copy.deepcopy(backbone.model)
        self.own_head = None if backbone.tied else nn.Parameter(backbone.head.clone())
        if settings.tune == "full":
            self.requires_grad_()
        else:
            self.requires_grad_(False)
            lora.inject(self.family.stack(self.encoder), self.family, settings)
        self.to(backbone.device)

    @property
    def head(self) -> Tensor:
        """[V, d] the output layer."""
        if self.own_head is not None:
            return self.own_head
        return self.family.embeddings(self.encoder).weight

    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]

    def forward(self, tokens: Tokens) -> Tensor:
        """Logits [B, L, V] of the token that follows each one; meaningless behind the end."""
        words = self.family.embeddings(self.encoder)
        h = tokens.ids.with_values(words(tokens.ids.values.to(words.weight.device)))
        types = tokens.ids.with_values(tokens.types.to(words.weight.device)).padded()
        return linear(self.family.top(self.encoder, h.padded(), h.mask(), types, 0), self.head)

    def losses(self, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor]:
        """Of every token but the first of each example: −ln p, whether it was predicted, and a mask.

        Returns:
            Three of [B, L − 1]; the mask is True where there is a token.
        """
        logits = self(tokens)[:, :-1].float()
        ids = tokens.ids.padded().to(logits.device)[:, 1:]
        mask = tokens.ids.mask().to(logits.device)[:, 1:]
        found = cross_entropy(logits.flatten(0, 1), ids.flatten(), reduction="none")
        return found.view(ids.shape) * mask, (logits.argmax(-1) == ids) & mask, mask


@torch.inference_mode()
def per_token(network: LanguageModel, tokens: Tokens) -> tuple[Ragged, Ragged]:
    """−ln p of every token and whether it was predicted; 0 and False for the first of an example."""
    network.eval()
    parts, batches = [], by_length(tokens.lengths, 32)
    for rows in batches:
        own = tokens.take(rows)
        loss, hits, _ = network.losses(own)
        whole = own.ids.mask()
        shifted = torch.zeros(*whole.shape, 2)
        shifted[:, 1:, 0], shifted[:, 1:, 1] = loss.cpu(), hits.float().cpu()
        parts.append(Ragged(shifted[whole.cpu()], own.lengths))
    both = Ragged.joined(parts).take(torch.cat(batches).argsort())
    return both.with_values(both.values[:, 0]), both.with_values(both.values[:, 1] > 0)


def offsets(backbone: Backbone, texts: Sequence[str], length: int) -> list[NDArray[np.int64]]:
    """Per text [L, 2] the characters that each of its tokens stands for, cut to `length` tokens.

    Of an opened text, as `Backbone.encode` has it: the token in front stands for no character.
    """
    out = backbone.tokenizer(
        list(texts), truncation=True, max_length=length, return_offsets_mapping=True
    )
    first, front = backbone.tokenizer.bos_token_id, np.zeros((1, 2), np.int64)
    return [
        np.array(own, np.int64)
        if first in (None, ids[0])
        else np.concatenate([front, np.array(own, np.int64)])[:length]
        for own, ids in zip(out["offset_mapping"], out["input_ids"], strict=True)
    ]


def covered(where: NDArray[np.int64], spans: Sequence[Span]) -> NDArray[np.bool_]:
    """[L] whether a token has a character in one of the spans."""
    found = np.zeros(len(where), bool)
    for span in spans:
        found |= (where[:, 0] < span.end) & (where[:, 1] > span.start)
    return found
