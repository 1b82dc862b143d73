"""Plain fine-tuning over an API: the undefended reference."""

from typing import ClassVar

from leakboard.bench.contracts import Channel, Head, Objective
from leakboard.bench.exchange import Session, Tuned, api, model_release
from leakboard.bench.methods import Conditions, Defense, Source


class NoDefense(Defense):
    """Inputs and LoRA go up in the clear with each call, activations come down; nothing is hidden.

    The gradients at the activations go up, those of LoRA come down; the customer holds LoRA, the
    head, the labels and the optimiser. A language model is trained so where `head` says who holds its
    output layer; else it is trained by its owner and released.
    """

    name: ClassVar[str] = "none"
    source: ClassVar[Source] = Source("P³EFT, API fine-tuning without protection", "section 3")
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS | {Channel.MODEL}
    objectives: ClassVar[frozenset[Objective]] = frozenset({"classification", "language modelling"})
    version: ClassVar[int] = 2
    colour: ClassVar[str] = "#222222"
    marker: ClassVar[str] = "*"

    head: Head | None = None
    """Of a language model that is tuned over the API: who holds its output layer, which stays the public one
    unless it is private. At the vendor's, logits come down and their gradients go up in place of activations
    and theirs. None: the model is trained by its owner and released."""

    younger: ClassVar[frozenset[str]] = frozenset({"head"})

    @property
    def sends(self) -> frozenset[Channel]:
        return self.emits if self.head is None else api.language_channels(self.head)

    @property
    def undefended(self) -> bool:
        return True

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.objective == "classification" and self.head:
            return "head: who holds it is asked of a language model; that of a classifier is the customer's"
        return None

    def fine_tune(self, session: Session) -> Tuned:
        if session.classes:
            return api.fine_tune(session)
        if self.head:
            return api.fine_tune_language(session, self.head)
        network = session.trainee()
        model_release.train(session, network, session.train)
        return model_release.Released(network)
