"""Plain fine-tuning over an API: the undefended reference."""

from typing import ClassVar

from bench import api
from bench.session import Session
from bench.types import Channel, Defense, Source, Tuned


class NoDefense(Defense):
    """Inputs and LoRA go up in the clear with each call, activations come down; nothing is hidden.

    The gradients at the activations go up, those of LoRA come down; the customer holds LoRA, the
    head, the labels and the optimiser.
    """

    name: ClassVar[str] = "none"
    source: ClassVar[Source] = Source("P³EFT, API fine-tuning without protection", "section 3")
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS
    version: ClassVar[int] = 2
    colour: ClassVar[str] = "#222222"
    marker: ClassVar[str] = "*"

    @property
    def undefended(self) -> bool:
        return True

    def fine_tune(self, session: Session) -> Tuned:
        return api.fine_tune(session)
