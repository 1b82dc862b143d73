"""Steps of training: on batches of similar length, by P³EFT, by DP-SGD and by RAPT."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from benchmarking import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy, pad
from training_steps import batch_step, session_of

from leakboard.bench.backbones import length_bucketed
from leakboard.bench.backbones.network import Network
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts import TrainSettings
from leakboard.bench.defending import PrivateGradients, dp_sgd
from leakboard.bench.defending.private_training import CPU_PASS_SIZE, passes
from leakboard.bench.exchange.api import Api
from leakboard.bench.exchange.model_release import losses
from leakboard.bench.exchange.server import Call, Server
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT, adversarial
from leakboard.defenses.rapt import RAPT

BATCH = 32
PADDED_TO = 64
EXAMPLES = 256
DRAWS = 3


@pytest.fixture(scope="module")
def texts(task, minilm) -> Tokens:
    """Some texts of the task."""
    return minilm.encode(task.splits["train"].texts[: 16 * BATCH], None, PADDED_TO)


@pytest.fixture(scope="module")
def batch(texts) -> Tokens:
    return texts.take(torch.arange(BATCH))


def test_length_buckets(comparison, task, minilm):
    """Training steps on batches of similar length, against padding all texts to one length."""
    train = task.limited(EXAMPLES, 0).splits["train"]
    tokens = minilm.encode(train.texts, train.pairs, PADDED_TO)
    labels, settings = torch.from_numpy(train.labels), TrainSettings()
    network = Network(minilm, 0, len(task.labels), settings, slice(None)).train()
    buckets = length_bucketed(tokens.lengths, settings.batch_size, np.random.default_rng(0))

    def padded_scores(h: Ragged) -> Tensor:
        mask = h.mask()
        room = (0, PADDED_TO - mask.shape[1])
        wide, mask = pad(h.padded(), (0, 0, *room)), pad(mask, room)
        types = torch.zeros(wide.shape[:2], dtype=torch.long)
        top = network.family.top(network.encoder, wide, mask, types, 0)
        return network.head((top * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True))

    def epoch(is_padded: bool) -> None:
        for rows in buckets:
            texts = tokens.take(rows)
            h = texts.ids.with_values(network.embeddings(texts.ids.values))
            network.zero_grad()
            scores = padded_scores(h) if is_padded else network(h, texts.types)
            cross_entropy(scores, labels[rows]).backward()

    comparison.measure(lambda: epoch(False), lambda: epoch(True))
    mean = float(tokens.lengths.float().mean())
    name = f"training: {EXAMPLES} examples of {task.name}, mean length {mean:.1f}"
    ratio = 1 / comparison.ratio()
    comparison.report(
        Figure(name, EXAMPLES / comparison.median, unit="examples/s"),
        Figure(f"  padding to {PADDED_TO} over buckets of a length", ratio, 2.0, 1.5, more=True),
    )


def test_p3eft_by_calls(comparison, minilm, batch):
    """A step of P³EFT against its floor of n forward and n·m backward calls, and the plain step."""
    calls = P3EFT(backprop="calls")
    session = session_of(batch, torch.arange(BATCH) % 2, minilm, batch_size=BATCH)
    client = Api(session, keep=calls.adapters)
    adapters = [client.adapter(i) for i in range(calls.adapters)]
    server = Server(client.network, client.autocast, calls.adapters)
    gradient, h = torch.ones(BATCH, minilm.width), torch.randn(BATCH, minilm.width)
    rows = torch.arange(BATCH)

    def floor() -> None:
        dropout = client.dropout()
        forward = [Call(batch, rows, adapter, dropout=dropout) for adapter in adapters]
        for call in forward:
            server.forward(call)
        for call in forward * calls.vectors:
            server.backward(call, gradient)

    def probes() -> None:
        for _ in adapters:
            adversarial(h, rows % 2)

    plain = batch_step(NoDefense(), batch, minilm)
    comparison.measure(batch_step(calls, batch, minilm), floor, plain, probes, rounds=5)
    name = f"p3eft: {calls.adapters} adapters, {calls.vectors} vectors, a batch of {BATCH}"
    comparison.report(
        Figure(f"{name}: step by calls over its calls alone", comparison.ratio(0), 1.3, 1.6),
        Figure("  over the plain step", comparison.ratio(1)),
        Figure("  share of the probes' fits in it", 1 / comparison.ratio(2), 0.2, 0.3),
    )


def test_p3eft_combined(comparison, minilm, batch):
    step = batch_step(P3EFT(backprop="combined"), batch, minilm)
    comparison.measure(step, batch_step(NoDefense(), batch, minilm), rounds=5)
    comparison.report(Figure("p3eft: combined step over the plain step", comparison.ratio()))


@pytest.fixture
def private_steps(minilm):
    """A function that takes a step of DP-SGD on parts of a batch."""
    network = Network(minilm, 0, 2, TrainSettings(), slice(None)).train()
    optimiser = torch.optim.AdamW(network.trained(), 1e-3)
    with PrivateGradients(network, 1.0, 1.0, BATCH, np.random.default_rng(0)) as gradients:

        def step(parts: Iterable[Tokens]) -> None:
            for part in parts:
                gradients.add(losses(network, part, torch.arange(len(part)) % 2))
            gradients.release()
            optimiser.step()
            optimiser.zero_grad()

        yield step


def test_dp_sgd(comparison, minilm, batch, private_steps):
    """A step of DP-SGD on LoRA and head of MiniLM, against the plain step on the same batch."""
    network = Network(minilm, 0, 2, TrainSettings(), slice(None)).train()
    optimiser = torch.optim.AdamW(network.trained(), 1e-3)

    def plain() -> None:
        losses(network, batch, torch.arange(BATCH) % 2).mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    comparison.measure(lambda: private_steps([batch]), plain, rounds=15)
    mean = float(batch.lengths.float().mean())
    name = f"dp-sgd: a batch of {BATCH}, mean length {mean:.1f}: over the plain step"
    comparison.report(Figure(name, comparison.ratio(), 1.6, 2.2))


def test_dp_sgd_of_drawn_batches(comparison, texts, private_steps):
    """Batches of any lengths as DP-SGD draws them: passes of similar length against one pass."""
    draws = dp_sgd.poisson_batches(len(texts), BATCH / len(texts), DRAWS, np.random.default_rng(0))

    def epoch(size: int) -> None:
        for rows in draws:
            private_steps(texts.take(part) for part in passes(rows, texts.lengths, size))

    comparison.measure(lambda: epoch(CPU_PASS_SIZE), lambda: epoch(len(texts)))
    name = f"dp-sgd: drawn batches, passes of {CPU_PASS_SIZE} of similar length over one pass"
    comparison.report(Figure(name, comparison.ratio()))


@pytest.mark.parametrize(
    "defense", [RAPT(eta=None, kind="prompt", length=20), RAPT(eta=None)], ids=["prompt", "prefix"]
)
def test_rapt(comparison, minilm, batch, defense):
    """A step of RAPT, against a plain step on texts as long as prompt, plain tokens and text."""
    more = defense.plain + (defense.length if defense.kind == "prompt" else 0)
    first = torch.repeat_interleave(batch.ids.starts, more).view(BATCH, more)
    rows = torch.cat([first, batch.ids.padded().long()], 1)
    lengths = batch.lengths + more
    ids = Ragged(rows[torch.arange(rows.shape[1]) < lengths[:, None]], lengths)
    zeros = torch.zeros(len(ids.values), dtype=torch.long)
    plain = batch_step(NoDefense(), Tokens(ids, zeros, zeros.bool()), minilm)
    comparison.measure(batch_step(defense, batch, minilm), plain, rounds=5)
    name = f"rapt: a {defense.kind} of {defense.length}, {defense.plain} plain tokens, a batch of {BATCH}"
    comparison.report(
        Figure(f"{name}: over the plain step at equal length", comparison.ratio(), 1.3, 1.6)
    )
