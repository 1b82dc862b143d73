"""Plain fine-tuning over an API: the undefended reference."""

from typing import ClassVar

from leakboard.bench.contracts import EVERY_OBJECTIVE, Channel, Head, Objective
from leakboard.bench.exchange import Session, Tuned, api, model_release
from leakboard.bench.methods import Conditions, Defense, Source, Stage


class NoDefense(Defense):
    """Fine-tune over an API without protection: token ids and LoRA weights are sent in the clear.

    Each call sends inputs and LoRA weights and returns activations; then the customer sends the gradients at the
    activations, and the vendor returns those of LoRA. The customer holds LoRA, the head, the labels and the
    optimiser. A language model is trained this way only if `head` is set; otherwise its owner trains and
    releases it.
    """

    name: ClassVar[str] = "none"
    display_name: ClassVar[str] = "No protection"
    source: ClassVar[Source] = Source("P³EFT, API fine-tuning without protection", "section 3")
    emits: ClassVar[frozenset[Channel]] = api.CHANNELS | {Channel.MODEL}
    objectives: ClassVar[frozenset[Objective]] = EVERY_OBJECTIVE
    version: ClassVar[int] = 2
    colour: ClassVar[str] = "#222222"
    marker: ClassVar[str] = "*"
    stage: ClassVar[Stage | None] = "training"
    combined_name: ClassVar[str] = "private head"

    head: Head | None = None
    """For a language model: who holds its output layer, which stays the public one unless it is private. If it is
    the vendor, logits and their gradients are exchanged instead of activations and theirs. None: the owner trains
    the model and releases it."""

    younger: ClassVar[frozenset[str]] = frozenset({"head"})

    @property
    def sends(self) -> frozenset[Channel]:
        return self.emits if self.head is None else api.language_channels(self.head)

    @property
    def undefended(self) -> bool:
        return True

    def skip(self, conditions: Conditions) -> str | None:
        if conditions.objective != "language modelling" and self.head:
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
