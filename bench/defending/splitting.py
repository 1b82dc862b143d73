"""Split fine-tuning with a frozen bottom: each example is sent once, and the vendor trains on it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from leakboard.bench.backbones import Network, Ragged, Tokens
from leakboard.bench.contracts import Channel, Envelope
from leakboard.bench.exchange import NextTokens, OutputLayer, Predictor, Session

Sends = Callable[[Tokens], Ragged]
"""The customer's side: function from texts to vectors [T, d] at the cut."""


def fit_on_sent(session: Session, network: Network, output: OutputLayer, sends: Sends) -> None:
    """Trains with examples that are sent once and stored by the vendor for all epochs.

    Args:
        output: output layer of a language model; a classifier uses the head of the network.
    """
    received, top = send_once(session, network, sends), _top(session, network)

    def step(rows: Tensor, epoch: int) -> float:
        with session.autocast():
            out = top(received.take(rows), session.train.take(rows).types)
        if session.classes:
            return session.backward_through_customer(out, rows, epoch)
        gradient, loss = output.learnt(out, rows, epoch)
        out.backward(gradient)  # type: ignore[no-untyped-call]
        return loss

    private = [] if session.classes else output.trained
    session.fit(step, {"params": [*network.trained(), *private]})


def send_once(session: Session, network: Network, sends: Sends) -> Ragged:
    """Sends all training examples once, and returns what the vendor receives."""
    network.eval()  # without dropout, as at inference
    received = session.send_once(sends)
    network.train()
    return received


def predictor(
    session: Session, network: Network, output: OutputLayer, sends: Sends
) -> Predictor | NextTokens:
    """The predictor of a model that was trained by `fit_on_sent`."""
    wire, top = session.wire, _top(session, network)

    def answered(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        sent = wire.send(Channel.REPRESENTATIONS, sends(tokens), rows, Envelope(split=split))
        with session.autocast():
            return top(sent, tokens.types)

    def score(tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        answer = Envelope(split=split, sender="vendor")
        return wire.send(Channel.LOGITS, answered(tokens, rows, split), rows, answer)

    def read(tokens: Tokens, rows: Tensor, split: str) -> tuple[Tensor, Tensor]:
        return output.read(answered(tokens, rows, split), tokens, rows, split)

    return Predictor(score, network) if session.classes else NextTokens(read, network)


def _top(session: Session, network: Network) -> Callable[[Ragged, Tensor], Tensor]:
    """The vendor's part: class scores [B, C], or for a language model the vectors [T, d] below the output layer."""
    return network if session.classes else network.features
