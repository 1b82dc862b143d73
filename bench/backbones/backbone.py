"""A public model with its initial weights, cut into a bottom and a top part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.neighbours import Neighbours
from leakboard.bench.backbones.ragged import Ragged, Tokens, by_length
from leakboard.bench.contracts import LeakboardError, Memory


def bos_prefix(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """Ids to prepend to a text of a language model: BOS, if its tokeniser has one and did not add it."""
    first = tokenizer.bos_token_id
    return [] if first is None or list(ids[:1]) == [first] else [first]


@dataclass(frozen=True)
class Backbone:
    """A public model with its initial weights. Everything here is known to the vendor and to attackers.

    Args:
        model: the model without its output layer, in evaluation mode, never trained in place.
        head: of a causal language model the output layer [V, d]: last hidden states times its
            transpose are the logits of the next token. None where the model is none.
    """

    name: str
    hash: str
    model: Any
    tokenizer: Any
    family: Family
    device: str = "cpu"
    head: Tensor | None = None

    @property
    def tied(self) -> bool:
        """Whether the output layer is E itself."""
        return self.head is not None and self.head.data_ptr() == self.embeddings.data_ptr()

    def output_layer(self) -> Tensor:
        """The `head` of a causal language model, [V, d].

        Raises:
            LeakboardError: the model is not a causal language model.
        """
        if self.head is None:
            raise LeakboardError(
                f"model '{self.name}' predicts no next token; a task of language modelling needs "
                "a causal model (GPT-2, OPT, Pythia, Llama, Mistral, Qwen, Gemma 3, Phi-3, OLMo 2, Falcon): dialogue-gpt, or a folder or hub id of one"
            )
        return self.head

    @cached_property
    def embeddings(self) -> Tensor:
        """Word embeddings E [V, d]."""
        return self.family.embeddings(self.model).weight.detach()

    @cached_property
    def neighbours(self) -> Neighbours:
        """Exact nearest rows of E."""
        return Neighbours(self.embeddings, self.device)

    @property
    def width(self) -> int:
        """Dimension of hidden states."""
        size: int = self.model.config.hidden_size
        return size

    def width_at(self, cut: int) -> int:
        """Dimension of the vectors at a cut: at 0 that of word embeddings."""
        return self.width if cut else self.embeddings.shape[1]

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids of the tokens that a tokeniser adds, padding included."""
        return tuple(sorted(set(self.tokenizer.all_special_ids)))

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        max_length: int,
        opened: bool = False,
    ) -> Tokens:
        """Tokenises texts, or pairs of texts, cutting each example to `max_length` tokens.

        Args:
            opened: for language modelling, where of a pair the first text is the prompt and the second its
                answer: puts the token that begins a text (BOS) in front where the tokeniser leaves it out, and
                behind an answer the one that ends it (EOS), so that a model learns where to stop. Language
                modelling of single texts needs BOS: the first token is then predicted, too, from what
                GPT-2 saw before each document, its <|endoftext|>. Classifiers never saw it there.

        Raises:
            LeakboardError: a text without any token, or of more than the model reads.
        """
        out = self.tokenizer(
            list(texts),
            None if pairs is None else list(pairs),
            truncation=True,
            max_length=max_length,
            return_special_tokens_mask=True,
            return_token_type_ids=True,
        )
        if opened:
            if pairs is not None:
                out["token_type_ids"] = self._answers(out, max_length)
            self._open(out, max_length)
            if pairs is not None:
                self._end(out, max_length)
        ids = Ragged.of(out["input_ids"])
        if not ids.lengths.all():
            # Only where the tokeniser adds no special token; there is nothing to be averaged then.
            raise LeakboardError(
                f"model '{self.name}': {int((ids.lengths == 0).sum())} texts have no token at all. "
                "Remove empty texts, or use a model whose tokeniser adds special tokens"
            )
        most = self.family.positions(self.model)
        longest = int(ids.lengths.max()) if len(ids) else 0
        if most is not None and longest > most:
            raise LeakboardError(
                f"model '{self.name}' reads at most {most:,} tokens, and a text has {longest:,} here; "
                f"lower train.max_length to {most} or less"
            )
        types = out.get("token_type_ids")
        types = Ragged.of(types).values if types else torch.zeros_like(ids.values)
        special = Ragged.of(out["special_tokens_mask"]).values.bool()
        return Tokens(ids, types, special)

    def _answers(self, out: Any, max_length: int) -> list[list[int]]:
        """Per row 1 for the tokens of an answer, behind the prompt that it answers.

        Raises:
            LeakboardError: a prompt that leaves no room for any of its answer.
        """
        rows = [
            [int(part == 1) for part in out.sequence_ids(i)] for i in range(len(out["input_ids"]))
        ]
        # BOS may take the last place.
        lost = sum(not any(row[: max_length - 1]) for row in rows)
        if lost:
            raise LeakboardError(
                f"{lost} prompts fill all {max_length} tokens of an example, so that nothing of their answers "
                "is left to learn; raise train.max_length, or shorten the prompts"
            )
        return rows

    def _open(self, out: Any, max_length: int) -> None:
        """Puts BOS in front of every row of the tokeniser's output that does not begin with it."""
        for row, ids in enumerate(out["input_ids"]):
            for first in bos_prefix(self.tokenizer, ids) if ids else ():
                front = {"input_ids": first, "special_tokens_mask": 1, "token_type_ids": 0}
                for key in out.keys() & front.keys():
                    out[key][row] = [front[key], *out[key][row]][:max_length]

    def _end(self, out: Any, max_length: int) -> None:
        """Puts EOS behind every answer that is there to its end."""
        last = self.tokenizer.eos_token_id
        for row, ids in enumerate(out["input_ids"]):
            if last is not None and ids[-1] != last and len(ids) < max_length:
                behind = {"input_ids": last, "special_tokens_mask": 1, "token_type_ids": 1}
                for key in out.keys() & behind.keys():
                    out[key][row] = [*out[key][row], behind[key]]

    def segments(self, ids: Ragged) -> Tensor:
        """[T] the segment of each token, as far as ids tell it: 1 behind the first separator of a pair.

        All 0 where the tokeniser does not tell the second text apart.
        """
        pair = self.tokenizer("a", "a", return_token_type_ids=True).get("token_type_ids") or [0]
        separator = self.tokenizer.sep_token_id
        if not any(pair) or separator is None:
            return torch.zeros_like(ids.values)
        ends = ids.with_values((ids.values == separator).long()).padded()
        before = ends.cumsum(1) - ends
        return before[ids.mask()].clamp(max=1).to(ids.values.dtype)

    @property
    def blocks(self) -> int:
        return self.family.blocks(self.model)

    def bottom(self, vectors: Ragged, types: Tensor, cut: int) -> Ragged:
        """Representations [T, d] at the cut from word embeddings [T, d], with the initial weights.

        Differentiable in `vectors`, without dropout.

        Args:
            types: [T] segment of each token.
        """
        return self.family.bottom_of(self.model, vectors, types, cut)

    def pooled(self, tokens: Tokens) -> Tensor:
        """[n, d] the mean of the last hidden states of each text over its tokens, with the initial weights.

        In batches of similar length, without gradients. The same public texts are asked for in many cells, so
        that what was computed last is kept; it is not to be written to.
        """
        return self._means.recall(tokens.digest, lambda _: self._pooled(tokens))

    @cached_property
    def _means(self) -> Memory:
        return Memory()

    def _pooled(self, tokens: Tokens) -> Tensor:
        found = self.embeddings.new_zeros(len(tokens), self.width)
        with torch.no_grad():
            for rows in by_length(tokens.lengths):
                batch = tokens.take(rows)
                words = batch.ids.with_values(self.embeddings[batch.ids.values.to(self.device)])
                found[rows.to(found.device)] = self.family.pooled(self.model, words, batch.types, 0)
        return found

    def check_cut(self, cut: int) -> None:
        """Raises LeakboardError where the model cannot be cut after block `cut`."""
        deepest = self.blocks - 1
        if not 0 <= cut <= deepest:
            raise LeakboardError(
                f"cut: model '{self.name}' cannot be cut at {cut}; it has {self.blocks} blocks, so "
                f"the deepest cut is {deepest} (0 = after the embeddings)"
            )
