"""A public model with its initial weights, cut into a bottom and a top part."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from leakboard.bench.backbones.family import Family
from leakboard.bench.backbones.neighbours import Neighbours
from leakboard.bench.backbones.ragged import BATCH, Ragged, Tokens, by_length
from leakboard.bench.backbones.tokeniser_trial import naming_panics
from leakboard.bench.contracts import LeakboardError, Memory, plain
from leakboard.bench.tasks import parse_prompt, plain_prompt

FEW = 32
"""Texts in a batch that passes some of the blocks. Of 600 texts of SST-2, 11 % of such batches is padding, and 31 % of those of `BATCH`."""
MEANS, FEWEST = 2**27, 24
"""Bytes of `Backbone.pooled` that a process keeps, where it is asked for single batches, and the fewest results. Single texts
have as many bytes again."""


def bos_prefix(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """Ids to prepend to a text of a language model: BOS, if its tokeniser has one and did not add it."""
    first = tokenizer.bos_token_id
    return [] if first is None or list(ids[:1]) == [first] else [first]


@dataclass(frozen=True)
class Backbone:
    """A public model with its initial weights, which the vendor and attackers know.

    Args:
        model: the model without its output layer, in evaluation mode, never trained in place.
        head: [V, d] output layer of a causal language model, else None.
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
        """Whether the output layer and E share weights."""
        return self.head is not None and self.head.data_ptr() == self.embeddings.data_ptr()

    @property
    def is_causal(self) -> bool:
        """Whether a hidden state depends only on the tokens so far."""
        return self.head is not None

    def output_layer(self) -> Tensor:
        """The `head` of a causal language model, [V, d].

        Raises:
            LeakboardError: the model is not a causal language model.
        """
        if self.head is None:
            raise LeakboardError(
                f"model '{self.name}' does not predict the next token; a language modelling task needs "
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
        """Dimension of the vectors at a cut; at 0, that of word embeddings."""
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
        """Tokenises texts, or pairs of texts, and cuts each example to `max_length` tokens.

        Prompts of chats (see `leakboard.bench.tasks.chat`) are formatted by the tokeniser's chat template, if it has
        one, which then adds BOS.

        Args:
            opened: for language modelling, where the first text of a pair is the prompt and the second is its answer.
                BOS is prepended if the tokeniser did not add it, so that the first token is predicted too. EOS is
                appended to answers, so that the model learns where to stop.

        Raises:
            LeakboardError: a text without tokens, or with more than the model reads; a chat that the template rejects.
        """
        texts, pairs, templated = self._as_chats(texts, pairs) if opened else (texts, pairs, False)
        with naming_panics(self.name):
            out = self.tokenizer(
                list(texts),
                None if pairs is None else list(pairs),
                truncation=True,
                max_length=max_length,
                add_special_tokens=not templated,
                return_special_tokens_mask=True,
                return_token_type_ids=True,
            )
        if templated:
            ends = {self.tokenizer.bos_token_id, self.tokenizer.eos_token_id}
            # An unknown word belongs to the text, unless its id is also that of EOS, as in GPT-2.
            marks = set(self.tokenizer.all_special_ids) - ({self.tokenizer.unk_token_id} - ends)
            out["special_tokens_mask"] = [
                [int(i in marks) for i in ids] for ids in out["input_ids"]
            ]
        if opened:
            if pairs is not None:
                out["token_type_ids"] = self._answers(out, max_length)
            if not templated:
                self._open(out, max_length)
            if pairs is not None:
                self._end(out, max_length)
        ids = Ragged.of(out["input_ids"])
        if not ids.lengths.all():
            # Only if the tokeniser adds no special token; there is then no vector to average.
            raise LeakboardError(
                f"model '{self.name}': {int((ids.lengths == 0).sum())} texts have no tokens. "
                "Remove empty texts, or use a model whose tokeniser adds special tokens"
            )
        most = self.family.positions(self.model)
        longest = int(ids.lengths.max()) if len(ids) else 0
        if most is not None and longest > most:
            raise LeakboardError(
                f"model '{self.name}' reads at most {most:,} tokens, but a text has {longest:,}; "
                f"lower train.max_length to {most} or less"
            )
        types = out.get("token_type_ids")
        types = Ragged.of(types).values if types else torch.zeros_like(ids.values)
        special = Ragged.of(out["special_tokens_mask"]).values.bool()
        return Tokens(ids, types, special)

    def _as_chats(
        self, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> tuple[Sequence[str], Sequence[str] | None, bool]:
        """Prompts and answers in the format of the model, and True if a chat template was used."""
        chats = [parse_prompt(text) for text in texts] if pairs is not None else []
        if pairs is None or not any(chats):
            return texts, pairs, False
        rows = zip(texts, chats, pairs, strict=True)
        if not self.tokenizer.chat_template:
            return [plain_prompt(chat) if chat else text for text, chat, _ in rows], pairs, False
        prompts, answers = [], []
        for text, chat, answer in rows:
            turns = [{"role": m.role, "content": m.content} for m in chat or ()]
            turns = turns or [{"role": "user", "content": text}]
            answer_turn = {"role": "assistant", "content": answer}
            try:
                prompt, conversation = (
                    self.tokenizer.apply_chat_template(
                        messages, tokenize=False, add_generation_prompt=is_prompt
                    )
                    for messages, is_prompt in ((turns, True), ([*turns, answer_turn], False))
                )
            except Exception as error:  # from jinja2, or raised by the template
                raise LeakboardError(
                    f"model '{self.name}': its chat template rejects a conversation with the roles "
                    f"{', '.join(turn['role'] for turn in turns)} ({plain(error)[:200]}); leave such rows out or "
                    "merge their messages"
                ) from error
            prompts.append(prompt)
            answers.append(
                conversation[len(prompt) :].rstrip() if conversation.startswith(prompt) else answer
            )
        return prompts, answers, True

    def _answers(self, out: Any, max_length: int) -> list[list[int]]:
        """For each row, 1 for tokens of the answer and 0 for tokens of the prompt.

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
                f"{lost} prompts fill all {max_length} tokens of an example and leave none for the answers; "
                "raise train.max_length, or shorten the prompts"
            )
        return rows

    def _open(self, out: Any, max_length: int) -> None:
        """Prepends BOS to every row of the tokeniser's output that does not begin with it."""
        for row, ids in enumerate(out["input_ids"]):
            for first in bos_prefix(self.tokenizer, ids) if ids else ():
                front = {"input_ids": first, "special_tokens_mask": 1, "token_type_ids": 0}
                for key in out.keys() & front.keys():
                    out[key][row] = [front[key], *out[key][row]][:max_length]

    def _end(self, out: Any, max_length: int) -> None:
        """Appends EOS to every answer that is not truncated."""
        last = self.tokenizer.eos_token_id
        for row, ids in enumerate(out["input_ids"]):
            if last is not None and ids[-1] != last and len(ids) < max_length:
                behind = {"input_ids": last, "special_tokens_mask": 1, "token_type_ids": 1}
                for key in out.keys() & behind.keys():
                    out[key][row] = [*out[key][row], behind[key]]

    def segments(self, ids: Ragged) -> Tensor:
        """[T] segment of each token from ids only: 1 after the first separator of a pair, 0 elsewhere.

        All 0 if the tokeniser does not mark the second text.
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

    def pooled(self, tokens: Tokens, blocks: int | None = None) -> Tensor:
        """[n, d] mean of the hidden states of each text, with the initial weights and without gradients.

        Results are cached, since many cells use the same public texts, and must not be modified.

        Args:
            blocks: number of blocks that are computed; None for all of them and the final norm.
        """
        key = f"{tokens.digest} {blocks}"
        return self._means.recall(key, lambda _: self._pooled(tokens, blocks))

    def pooled_singly(self, tokens: Tokens) -> Tensor:
        """[n, d] as `pooled`, but each text is encoded once, so that overlapping sets of texts share the results.

        Vectors depend on the batch in which a text was first encoded, by rounding.
        """
        keys = tokens.digests()
        held = {key: self._each[key] for key in keys if key in self._each}
        new = {key: row for row, key in enumerate(keys) if key not in held}
        if new:
            encoded = self._pooled(tokens.take(torch.tensor(list(new.values()))), None)
            held.update(zip(new, encoded, strict=True))
        return torch.stack([held[key] for key in keys])

    @cached_property
    def _means(self) -> Memory:
        return Memory(max(FEWEST, MEANS // (4 * BATCH * self.width)))

    @cached_property
    def _each(self) -> OrderedDict[bytes, Tensor]:
        """[d] mean of the last hidden states of texts, by their digests; the oldest first."""
        return OrderedDict()

    def _pooled(self, tokens: Tokens, blocks: int | None) -> Tensor:
        # Outside of inference mode: the next cell may train a head on the same vectors.
        with torch.inference_mode(False), torch.no_grad():
            means = self.embeddings.new_zeros(len(tokens), self.width)
            for rows in by_length(tokens.lengths, BATCH if blocks is None else FEW):
                batch = tokens.take(rows)
                words = batch.ids.with_values(self.embeddings[batch.ids.values.to(self.device)])
                means[rows.to(means.device)] = (
                    self.family.pooled(self.model, words, batch.types, 0)
                    if blocks is None
                    else self.bottom(words, batch.types, blocks).means()
                )
        if blocks is None:
            self._each.update(zip(tokens.digests(), means, strict=True))
            while len(self._each) > MEANS // (4 * self.width):
                self._each.popitem(last=False)
        return means

    def check_cut(self, cut: int) -> None:
        """Raises LeakboardError if the model cannot be cut after block `cut`."""
        deepest = self.blocks - 1
        if not 0 <= cut <= deepest:
            raise LeakboardError(
                f"cut: model '{self.name}' cannot be cut at {cut}; it has {self.blocks} blocks, so "
                f"the deepest cut is {deepest} (0 = after the embeddings)"
            )
