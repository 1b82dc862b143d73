"""keep-emulator: the customer predicts without the vendor, using the emulator."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from leakboard.bench.contracts import Channel, Goal, Guess, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Attack, Knowledge, Silent, Source


class KeepEmulator(Attack):
    """Predict with the emulator and the adapter that was tuned on it, without paying the vendor.

    Success is its accuracy; the utility of the cell is that of the adapter in the vendor's model. The difference
    is the value that the vendor keeps.
    """

    name: ClassVar[str] = "keep-emulator"
    source: ClassVar[Source] = Source(
        "Offsite-Tuning: Transfer Learning without Full Model (Xiao et al. 2023)",
        "section 3, emulator performance",
        "https://arxiv.org/abs/2302.04870",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.MODEL}, reads={Channel.EMULATOR}, knows={Knows.HELD}
    )

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        held = knowledge.held
        if held is None:
            raise Silent("the customer holds nothing that predicts")
        about = (Goal.MODEL, Channel.EMULATOR, held.split, held.rows, held.predicted)
        return [Guess(*about, view=held.split)]
