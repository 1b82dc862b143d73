"""Plain fine-tuning over an API: the undefended reference."""

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.ragged import Tokens
from bench.session import Predictor, Session
from bench.types import Channel, Defense, Source, Tuned


class NoDefense(Defense):
    """The vendor holds the model and LoRA, the customer the head and the labels; nothing is hidden.

    Inputs go up in the clear, pooled activations come down, gradients at the activations go up.
    """

    name: ClassVar[str] = "none"
    source: ClassVar[Source] = Source("P³EFT, API fine-tuning without protection", "section 3")
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {Channel.TOKENS, Channel.ACTIVATIONS, Channel.GRADIENTS}
    )
    colour: ClassVar[str] = "#222222"
    marker: ClassVar[str] = "*"

    @property
    def undefended(self) -> bool:
        return True

    def fine_tune(self, session: Session) -> Tuned:
        network, wire = session.network(), session.wire

        def features(tokens: Tokens, rows: Tensor, split: str, epoch: int) -> Tensor:
            ids = wire.send(Channel.TOKENS, tokens.ids, rows, round=epoch, split=split)
            vectors = network.embeddings(ids.values.to(session.device))
            with session.autocast():
                return network.features(ids.with_values(vectors), tokens.types)

        def step(rows: Tensor, epoch: int) -> float:
            h = features(session.train.take(rows), rows, "train", epoch)
            seen = wire.send(Channel.ACTIVATIONS, h, rows, round=epoch, sender="vendor")
            seen.requires_grad_()
            scores = network.head(seen.float())
            loss = cross_entropy(scores, session.labels[rows].to(scores.device))
            loss.backward()  # type: ignore[no-untyped-call]
            assert seen.grad is not None
            h.backward(wire.send(Channel.GRADIENTS, seen.grad, rows, round=epoch))  # type: ignore[no-untyped-call]
            return loss.item()

        session.fit(step, {"params": network.trained()})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            h = features(tokens, rows, split, 0)
            h = wire.send(Channel.ACTIVATIONS, h, rows, split=split, sender="vendor")
            scores: Tensor = network.head(h.float())
            return scores

        return Predictor(score, network)
