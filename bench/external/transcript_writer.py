"""Sends recorded passes over a wire, with the examples, round and channel of each message."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leakboard.bench.backbones import Ragged
from leakboard.bench.contracts import (
    Channel,
    Envelope,
    Head,
    Ints,
    LeakboardError,
    Party,
    Recording,
    Transcript,
    as_ints,
)
from leakboard.bench.exchange import Missing, Wire
from leakboard.bench.external.passes import Destination, Pass
from leakboard.bench.external.rows import (
    UNKNOWN,
    ExampleRows,
    batch_keys,
    complete_rounds,
    order_digest,
    recorded_rows,
    without_rows,
)

UNFINISHED = "examples in rounds that were not finished"
EVALUATION = "passes in evaluation mode or without gradients"
UNLISTED = "examples that are not among those given"
CUT_NOT_REACHED = "passes that did not come to the cut"
NO_TOKEN_IDS = "passes of vectors that no token ids were looked up for"
NO_TOKENS = "examples without a token"
PACKED_PADDING = "packed examples of a single token"
PER_TOKEN = "passes with logits of every token"
BEYOND = "examples whose gradients of every token exceed the megabytes"
SECOND_BACKWARD = "gradients of another pass backward"
"""Why something is left out."""
NOT_TRAINING = "the first pass runs without gradients and is not recorded. To record evaluation or inference as well, give split=('train', 'dev')"
SHARE = 0.75
"""Largest share of the megabytes for gradients at the logits of every token."""


class TranscriptWriter:
    """Writer of recorded passes to a transcript.

    Args:
        splits: name of the training split, and optionally of the evaluation split.
        keys: keys of the examples of the first split, in order; None numbers them in order of appearance.
        tokens: whether token ids are sent in the clear, too.

    Attributes:
        classes: number of logits; None if there were none.
        only_pooled: name of a submodule for which a public model is valid only if it sends one vector per text;
            else empty.
        causal: whether the model predicts the next token of each one.
        head: holder of the output layer of a causal model. None until the first pass: then the vendor, if the pass has
            logits, and else the customer, since the loss is computed within the output layer.
        note: called with each training pass and the number of its examples.
    """

    def __init__(
        self, record: Recording, splits: Sequence[str], keys: Sequence[bytes] | None, tokens: bool
    ) -> None:
        self._splits, self._tokens = splits, tokens
        self._rows = {split: ExampleRows(record.examples) for split in splits}
        self._rows[splits[0]] = ExampleRows(record.examples, keys)
        recorded = {split: rows.recorded for split, rows in self._rows.items()}
        self._wire = Wire(frozenset(Channel), recorded, record.megabytes * 2**20)
        self._given, self._met = keys is not None, False
        self._about: Ints | None = None
        self._named: set[str] = set()
        self._steps, self._ended = 0, False
        self._left_out: Counter[str] = Counter()
        self._recorded = recorded[splits[0]]
        self._room = int(SHARE * record.megabytes * 2**20)
        self._beyond: list[int] = []
        self.classes: int | None = None
        self.only_pooled, self.causal = "", False
        self.head: Head | None = None
        self.note: Callable[[Pass, int], None] = lambda seen, examples: None

    def about(self, rows: Any) -> None:
        """Name the examples of the next pass."""
        self._about = as_ints(rows, "rows", least=0)

    def take(self, seen: Pass) -> None:
        """Record a pass that has ended, or count why it is left out."""
        about, self._about = self._about, None
        training = seen.graph and seen.training
        if seen.sent is None:
            if training and not self._steps:
                raise LeakboardError(
                    "cut: the first pass did not reach it, so nothing would be recorded. Name a submodule that "
                    "each pass runs, such as cut='encoder.2'"
                )
            self._left_out[CUT_NOT_REACHED] += 1
            return
        if not (seen.graph or self._steps or self._left_out) and len(self._splits) == 1:
            warnings.warn(NOT_TRAINING, stacklevel=2)
        if training:
            self._put(seen, about)
        elif len(self._splits) > 1:
            self._put(seen, about, self._splits[1])
            return
        else:
            self._left_out[EVALUATION] += 1
            if not seen.graph:
                return
            seen.on_backward(partial(self._differentiated, seen, about))
        seen.on_gradients(
            logits=partial(self._gradient, seen, Channel.LOGIT_GRADIENTS),
            cut=partial(self._gradient, seen, Channel.CUT_GRADIENTS),
            last=partial(self._gradient, seen, Channel.GRADIENTS),
        )

    def end(self, cut_short: str) -> tuple[Transcript, Missing]:
        """Finish, and return the complete rounds and a description of what is missing."""
        self._ended = True
        whole = without_rows(self._wire.transcript(), self._splits[0], np.array(self._beyond, int))
        transcript, unfinished = complete_rounds(whole)
        self._left_out[UNFINISHED] += unfinished
        return transcript, Missing(cut_short, dict(+self._left_out))

    def order(self, transcript: Transcript) -> dict[str, str] | None:
        """By split the digest of its examples in the order of their rows, except where `about` named them."""
        found = {}
        for split, known in self._rows.items():
            rows = recorded_rows(transcript, split).tolist()
            if rows and split not in self._named:
                keys = known.keys()
                found[split] = order_digest(keys[row] for row in rows)
        return found or None

    def _differentiated(self, seen: Pass, about: Ints | None, gradient: Tensor) -> None:
        """Record a pass in evaluation mode as training when it is differentiated."""
        if seen.where is None and not self._ended:
            self._left_out[EVALUATION] -= 1
            self._put(seen, about)

    def _put(self, seen: Pass, about: Ints | None, evaluation: str | None = None) -> None:
        """Send the messages of a forward pass."""
        assert seen.sent is not None
        split = evaluation or self._splits[0]
        rows, rounds = self._identified(seen, about, split)
        seen.where = Destination(split, -1 if evaluation else self._steps, rows, rounds)
        self._steps += not evaluation
        ragged = isinstance(seen.sent, Ragged)
        if ragged and self.only_pooled:
            raise LeakboardError(
                f"base: '{self.only_pooled}' is neither the word embeddings nor a block, and sends one vector per "
                "token, so the corresponding vectors of the public model are not known. Leave base out, or "
                "give the number of a cut"
            )
        if evaluation is None:
            self.note(seen, len(seen.sent))
        self._send(seen, Channel.REPRESENTATIONS if ragged else Channel.ACTIVATIONS, seen.sent)
        if self._tokens and seen.inputs is not None and seen.inputs.dim() == 2:
            self._send(seen, Channel.TOKENS, seen.of_tokens(seen.inputs))
        if seen.logits is not None:
            self.classes = seen.logits.shape[1]
            self._send(seen, Channel.LOGITS, seen.logits, "vendor")
        if not self.causal:
            self._left_out[PER_TOKEN] += seen.per_token > 0
        elif seen.logits is None and evaluation is None:
            if self.head is None:
                self.head = "vendor" if seen.per_token else "customer"
            if self.head == "customer" and seen.last is not None:
                self._send(seen, Channel.ACTIVATIONS, seen.last, "vendor", first=True)
        seen.sent = seen.logits = seen.last = None  # free the copies

    def _gradient(self, seen: Pass, channel: Channel, gradient: Tensor) -> None:
        """Send a gradient of a pass, only the first one on each channel."""
        of_tokens = gradient.dim() == 3 and channel != Channel.CUT_GRADIENTS
        if self._ended or seen.where is None or (of_tokens and not self._expects(channel)):
            return
        if channel in seen.where.came:
            self._left_out[SECOND_BACKWARD] += 1
            return
        seen.where.came.add(channel)
        if of_tokens:
            self._token_gradient(seen, channel, gradient)
        elif channel == Channel.LOGIT_GRADIENTS:
            self._send(seen, channel, gradient)
        else:
            answer = seen.without_padding(gradient)
            ragged = isinstance(answer, Ragged)
            self._send(seen, channel if ragged else Channel.GRADIENTS, answer, "vendor")

    def _expects(self, channel: Channel) -> bool:
        """Whether gradients of every token on a channel cross the boundary."""
        holder = "vendor" if channel == Channel.LOGIT_GRADIENTS else "customer"
        return self.causal and self.head == holder

    def _token_gradient(self, seen: Pass, channel: Channel, gradient: Tensor) -> None:
        """Send gradients [B, L, d] of the first round, as many examples as fit; later rounds have the same labels."""
        where, layout = seen.where, seen.layout
        assert where is not None
        if layout is None or gradient.shape[1] not in (
            layout.length,
            layout.length + layout.virtual,
        ):
            self._left_out[PER_TOKEN] += 1
            return
        chosen = []
        for i in np.flatnonzero((where.rounds == 0) & np.isin(where.rows, self._recorded)).tolist():
            size = 4 * int(layout.lengths[i]) * gradient.shape[2]
            if channel == Channel.LOGIT_GRADIENTS:
                if size > self._room:
                    self._beyond.append(int(where.rows[i]))
                    self._left_out[BEYOND] += 1
                    continue
                self._room -= size
            chosen.append(i)
        if chosen:
            part = layout.only(torch.tensor(chosen)).take(gradient)
            self._wire.at(where.step, None)
            rows = torch.from_numpy(where.rows[chosen])
            self._wire.send(channel, part, rows, Envelope(0, where.split))

    def _identified(self, seen: Pass, about: Ints | None, split: str) -> tuple[Ints, Ints]:
        """[B] row and round of each example of a pass."""
        sent, known, train = seen.sent, self._rows[split], split == self._splits[0]
        assert sent is not None
        n = len(sent)
        if about is not None:
            if len(about) != n:
                raise LeakboardError(f"about: got {len(about)} rows for a pass over {n} examples")
            self._named.add(split)
            return known.count(about)
        if seen.inputs is None:
            if train and not self._steps:
                raise LeakboardError(
                    "model: the first pass got vectors for which no token ids were looked up, so its examples are "
                    "unknown. Name the examples of each batch with recorder.about(rows)"
                )
            self._left_out[NO_TOKEN_IDS] += 1
            return np.full(n, UNKNOWN), np.zeros(n, np.int64)
        keys = batch_keys(seen.inputs, seen.layout)
        if len(keys) != n:
            raise LeakboardError(
                f"cut: the output has {n} examples, but the model got {len(keys)}; expected [B, L, d] or "
                "[B, d], with the examples first"
            )
        rows, rounds = known.find(keys)
        if self._given and train:
            self._left_out[UNLISTED] += int((rows == UNKNOWN).sum())
            if not self._met and (rows == UNKNOWN).all():
                raise LeakboardError(
                    f"examples: none of the {n} in the first batch is among them. They must hold the same ids as the "
                    "inputs of the model, including special tokens, without padding or with an attention mask. "
                    "If ids are changed before the model is called, name the examples of each batch by "
                    "recorder.about(rows)"
                )
            self._met = True
        if isinstance(sent, Ragged):
            empty = sent.lengths.numpy() == 0
            self._left_out[NO_TOKENS] += int(empty.sum())
            if seen.layout is not None and seen.layout.packed:
                # What fills a pack up looks like this, and a single token has no label.
                single = sent.lengths.numpy() == 1
                self._left_out[PACKED_PADDING] += int(single.sum())
                empty |= single
            rows = np.where(empty, UNKNOWN, rows)
        return rows, rounds

    def _send(
        self,
        seen: Pass,
        channel: Channel,
        payload: Tensor | Ragged,
        sender: Party = "customer",
        first: bool = False,
    ) -> None:
        """Send a message of a pass, in the first round only if `first`."""
        assert seen.where is not None
        where = seen.where
        self._wire.at(where.step, None)
        for r in np.unique(where.rounds[where.rows != UNKNOWN]).tolist():
            if first and r > 0:
                continue
            chosen = np.flatnonzero((where.rows != UNKNOWN) & (where.rounds == r))
            at, rows = torch.from_numpy(chosen), torch.from_numpy(where.rows[chosen])
            part: Any = payload.take(at) if isinstance(payload, Ragged) else payload[at]
            self._wire.send(channel, part, rows, Envelope(r, where.split, sender))
