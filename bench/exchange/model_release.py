"""Training and release of a model: its owner trains alone, then everybody receives the trained parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leakboard.bench.backbones import (
    LanguageModel,
    Network,
    Ragged,
    Tokens,
    by_length,
    chunks,
    per_token,
    score_loss,
)
from leakboard.bench.exchange.predictor import Predictor
from leakboard.bench.exchange.session import Session
from leakboard.bench.exchange.tuned_model import Tuned

Trainee = Network | LanguageModel


class Released(Tuned):
    """The released model, without any change."""

    def __init__(self, network: Trainee) -> None:
        self.network = network.eval()

    def per_token(self, tokens: Tokens, split: str) -> tuple[Ragged, Ragged]:
        network = self.network
        assert isinstance(network, LanguageModel), "a classifier predicts classes, not tokens"
        return per_token(network, tokens)

    @torch.inference_mode()
    def next_words(self, tokens: Tokens, rows: Tensor, split: str) -> Tensor:
        network = self.network
        assert isinstance(network, LanguageModel), "a classifier predicts no words"
        last = network.hidden(tokens)[torch.arange(len(tokens)), tokens.lengths - 1]
        best = [scores.argmax(1) for _, scores in chunks(last, network.head)]
        return torch.cat(best).cpu()

    def predict(self, tokens: Tokens, split: str) -> Tensor:
        network = self.network
        assert isinstance(network, Network), "a language model predicts tokens, not classes"
        return Predictor(lambda own, rows, name: class_scores(network, own), network).predict(
            tokens, split
        )


def class_scores(network: Network, tokens: Tokens) -> Tensor:
    """Class scores [B, C] of token ids."""
    return network.scores(network.vectors(tokens))


def losses(network: Trainee, tokens: Tokens, labels: Tensor) -> Tensor:
    """[B] loss of each example; for a language model the mean over its tokens."""
    if isinstance(network, LanguageModel):
        loss, _, mask = network.losses(tokens)
        return loss.sum(1) / mask.sum(1).clamp(min=1)
    found = class_scores(network, tokens)
    return score_loss(found, labels.to(found.device), "none")


def losses_of(
    session: Session, network: Trainee, tokens: Tokens, labels: Tensor
) -> Callable[[Tensor], Tensor]:
    """Function from rows of `tokens` to the loss of each example.

    If only the head is trained, the features of all examples are computed once, here.
    """
    if session.settings.tune != "head" or isinstance(network, LanguageModel):

        def each(rows: Tensor) -> Tensor:
            with session.autocast():
                return losses(network, tokens.take(rows), labels[rows]).float()

        return each
    known, head = _features(session, network, tokens), network.head
    truth = labels.to(known.device)
    return lambda rows: score_loss(head(known[rows]), truth[rows], "none")


@torch.no_grad()
def _features(session: Session, network: Network, tokens: Tokens) -> Tensor:
    """[n, d] input of the head for each example."""
    network.eval()
    device = network.embeddings.weight.device
    known = torch.zeros(len(tokens), session.backbone.width, device=device)
    batches = by_length(tokens.lengths)
    for rows in session.progress("features", batches, len(batches)):
        with session.autocast():
            known[rows] = network.vectors(tokens.take(rows)).float()
    network.train()
    return known


def confidences(network: Trainee, tokens: Tokens, labels: Tensor) -> Tensor:
    """[B] ln(p/(1 − p)) of the class of each example; for other labels minus the loss, and for a language model the mean
    of ln p over its tokens.

    It is approximately normal over models (Carlini et al. 2022, equation 3).
    """
    if isinstance(network, LanguageModel) or labels.is_floating_point():
        return -losses(network, tokens, labels)
    found = class_scores(network, tokens)
    own = torch.nn.functional.one_hot(labels.to(found.device), found.shape[1]).bool()
    rest = found.masked_fill(own, -torch.inf).logsumexp(1)
    return found[own] - rest


def train(
    session: Session,
    network: Trainee,
    tokens: Tokens,
    rows: Tensor | None = None,
    release: bool = True,
) -> None:
    """Trains on `tokens` without any protection.

    Args:
        tokens: one example for each text of the session.
        rows: sorted rows to train on; None for all.
        release: release the model after each epoch; False if training continues afterwards.
    """
    network.train()
    used = session.all_rows if rows is None else rows
    tokens, labels = tokens.take(used), session.labels[used]
    each = losses_of(session, network, tokens, labels)

    def step(rows: Tensor) -> float:
        if isinstance(network, LanguageModel):
            with session.autocast():
                loss, _, mask = network.losses(tokens.take(rows))
                mean = loss.sum() / mask.sum()
        else:
            mean = each(rows).mean()
        mean.backward()  # type: ignore[no-untyped-call]
        return mean.item()

    fit(session, network, step, tokens.lengths, release=release)


def fit(
    session: Session,
    network: Trainee,
    step: Callable[[Tensor], float],
    lengths: Tensor,
    drawn: Sequence[Sequence[Tensor]] | None = None,
    release: bool = True,
) -> None:
    """Runs the session's training loop and releases the trained parameters after each epoch.

    Args:
        step, drawn: as in `Loop.fit`.
    """
    done = [0, 0]  # steps, and completed epochs

    def counted(rows: Tensor, epoch: int) -> float:
        if release and epoch > done[1]:
            session.wire.release(vector_of(network), epoch - 1, done[0])
        done[1] = epoch
        done[0] += 1
        return step(rows)

    session.fit(counted, {"params": network.trained()}, lengths=lengths, drawn=drawn)
    if release:
        session.wire.release(vector_of(network), done[1], done[0])


def restore(network: Trainee, vector: Tensor) -> Trainee:
    """Fills a new `network` with the released parameters [P] and returns it in evaluation mode."""
    trained = network.trained()
    torch.nn.utils.vector_to_parameters(vector.to(trained[0].device), trained)
    return network.eval()


def vector_of(network: Trainee) -> Tensor:
    """[P] trained parameters of a model, as they are released; the inverse of `restore`."""
    return torch.nn.utils.parameters_to_vector(network.trained()).detach()
