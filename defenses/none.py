"""Plain fine-tuning over an API: the undefended reference."""

from typing import ClassVar

from bench.contracts import Channel, Objective
from bench.exchange import Session, Tuned, api, released
from bench.methods import Defense, Source


class NoDefense(Defense):
    """Inputs and LoRA go up in the clear with each call, activations come down; nothing is hidden.

    The gradients at the activations go up, those of LoRA come down; the customer holds LoRA, the
    head, the labels and the optimiser. A language model is trained by its owner and released.
    """

    name: ClassVar[str] = "none"
    source: ClassVar[Source] = Source("P³EFT, API fine-tuning without protection", "section 3")
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS | {Channel.MODEL}
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification", "language modelling"})
    version: ClassVar[int] = 2
    stacks: ClassVar[bool] = True
    colour: ClassVar[str] = "#222222"
    marker: ClassVar[str] = "*"

    @property
    def undefended(self) -> bool:
        return True

    def fine_tune(self, session: Session) -> Tuned:
        if session.classes:
            return api.fine_tune(session)
        network = session.trainee()
        released.train(session, network, session.train)
        return released.Released(network)
