"""prior: guesses from public frequencies alone, the baseline of every attack."""

from typing import ClassVar

import numpy as np
from numpy.random import Generator

from leakboard.bench.contracts import Channel, Goal, Guess, Ints, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Source


class Prior(Attack):
    """Guess the most frequent token, class and attribute value of public text everywhere."""

    name: ClassVar[str] = "prior"
    source: ClassVar[Source] = Source("Leakboard", "baseline")
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.INVERSION, Goal.LABEL, Goal.ATTRIBUTE},
        reads=frozenset(),
        knows={Knows.AUXILIARY_TEXT},
    )

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        public = knowledge.auxiliary
        assert public is not None
        guesses = []
        for channel in (Channel.REPRESENTATIONS, Channel.TOKENS):
            for split in seen.splits(channel):
                sent = seen.blocks(channel, split, seen.rounds(channel, split)[0])
                read = [(block.rows, block.lengths) for block in sent]
                rows, lengths = (np.concatenate(column) for column in zip(*read, strict=True))
                ids = public.tokens.ids.values[~public.tokens.special].numpy()
                values = np.full(lengths.sum(), _most_frequent(ids))
                guesses.append(
                    Guess(Goal.INVERSION, None, split, rows, values, lengths, view=split)
                )
            if guesses:
                break
        weights = (Channel.MODEL, Channel.EMULATOR)  # which name no example
        shown = [m for m in seen.messages if m.channel not in weights]
        trained = [m.rows for m in shown if m.split == "train" and m.moment is None]
        if not trained:
            return guesses
        rows = np.unique(np.concatenate(trained))
        # Labels of another task are not given, and those of regression are no classes.
        if len(public.labels) and public.labels.dtype.kind == "i":
            label = np.full(len(rows), _most_frequent(public.labels.astype(np.int64)))
            guesses.append(Guess(Goal.LABEL, None, "train", rows, label, view="train"))
        for name, values in public.attributes.items():
            known = values[values >= 0]
            if not len(known):
                continue
            value = np.full(len(rows), _most_frequent(known))
            guesses.append(
                Guess(Goal.ATTRIBUTE, None, "train", rows, value, attribute=name, view="train")
            )
        return guesses


def _most_frequent(values: Ints) -> int:
    return int(np.bincount(values).argmax())
