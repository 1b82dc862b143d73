"""Plain fine-tuning over an API: the undefended reference."""

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.api import Api
from bench.ragged import Tokens
from bench.session import Predictor, Session
from bench.types import Channel, Defense, Source, Tuned


class NoDefense(Defense):
    """Inputs and LoRA go up in the clear with each call, activations come down; nothing is hidden.

    The gradients at the activations go up, those of LoRA come down; the customer holds LoRA, the
    head, the labels and the optimiser.
    """

    name: ClassVar[str] = "none"
    source: ClassVar[Source] = Source("P³EFT, API fine-tuning without protection", "section 3")
    emits: ClassVar[frozenset[Channel]] = frozenset(
        {
            Channel.TOKENS,
            Channel.PARAMETERS,
            Channel.ACTIVATIONS,
            Channel.GRADIENTS,
            Channel.ADAPTER_GRADIENTS,
        }
    )
    version: ClassVar[int] = 2
    colour: ClassVar[str] = "#222222"
    marker: ClassVar[str] = "*"

    @property
    def undefended(self) -> bool:
        return True

    def fine_tune(self, session: Session) -> Tuned:
        api = Api(session)
        adapter, head = api.adapter(), api.head

        def step(rows: Tensor, epoch: int) -> float:
            tokens, dropout = session.train.take(rows), api.dropout()
            h = api.forward(tokens, rows, adapter, round=epoch, dropout=dropout)
            loss = cross_entropy(head(h), session.labels[rows].to(h.device))
            loss.backward()  # type: ignore[no-untyped-call]
            assert h.grad is not None
            found = api.backward(tokens, rows, adapter, h.grad, round=epoch, dropout=dropout)
            for name, parameter in adapter.items():
                parameter.grad = found[name]
            return loss.item()

        session.fit(step, {"params": [*adapter.values(), *head.parameters()]})

        def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
            scores: Tensor = head(api.forward(tokens, rows, adapter, split=split))
            return scores

        return Predictor(score, api.network)
