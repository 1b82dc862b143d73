"""pooled-moments: label inference from all that training showed of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from leakboard.attacks.logreg import LogReg
from leakboard.bench.attacking import Matrix, pool_rounds
from leakboard.bench.contracts import Channel, Goal, Knows, ThreatModel, Transcript
from leakboard.bench.methods import Source

CHANNELS = (Channel.ACTIVATIONS, Channel.GRADIENTS)


class PooledMoments(LogReg):
    """`logreg` on the vectors of a text in all rounds of training, and of all parts that one server saw, at once.

    Single moments are looked at one by one by `logreg`, and the largest of many successes is above the true one.
    Here each server and channel gives one guess about each recorded text. Every message of it counts.
    """

    name: ClassVar[str] = "pooled-moments"
    source: ClassVar[Source] = Source(
        "Leakboard", "adaptive attack on labels over an API; the classifier of P³EFT, section 4.2"
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL}, reads=CHANNELS, knows={Knows.LABELS}
    )

    def matrices_of(self, seen: Transcript) -> Sequence[Matrix]:
        return [pooled for channel in CHANNELS for pooled in pool_rounds(seen, channel)]
