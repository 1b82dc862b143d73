"""Steps of training: plain, padded, by P³EFT, by DP-SGD and by RAPT."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from leakboard.bench.backbones import Network, Ragged, Tokens, length_bucketed, load_backbone
from leakboard.bench.contracts import Seeds, TrainSettings, quietly
from leakboard.bench.defending import CPU_PASS_SIZE, PrivateGradients, dp_sgd, passes
from leakboard.bench.exchange import CHANNELS, Api, Call, Server, Session, Wire, losses
from leakboard.bench.methods import Defense
from leakboard.bench.speed import interleaved, seconds
from leakboard.bench.speed.figures import Figure
from leakboard.bench.tasks import load_task
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT, adversarial
from leakboard.defenses.rapt import RAPT


def training(examples: int = 256, padded_to: int = 64) -> list[Figure]:
    """Training steps on length-bucketed batches, against padding everything to one length."""
    data = os.environ.get("LEAKBOARD_DATA")
    name = "sst2" if data else "reviews"
    task = load_task(name, Path(data) if data else None).limited(examples, 0)
    backbone = load_backbone("minilm")
    train = task.splits["train"]
    tokens = backbone.encode(train.texts, train.pairs, padded_to)
    labels = torch.from_numpy(train.labels)
    settings = TrainSettings()
    network = Network(backbone, 0, len(task.labels), settings, slice(None)).train()
    bucketed = length_bucketed(tokens.lengths, settings.batch_size, np.random.default_rng(0))

    def step(rows: Tensor, pad: int) -> None:
        batch = tokens.take(rows)
        h = batch.ids.with_values(network.embeddings(batch.ids.values))
        network.zero_grad()
        if pad:
            mask = h.mask()
            room = (0, pad - mask.shape[1])
            wide = torch.nn.functional.pad(h.padded(), (0, 0, *room))
            types = torch.zeros(wide.shape[:2], dtype=torch.long)
            mask = torch.nn.functional.pad(mask, room)
            out = network.family.top(network.encoder, wide, mask, types, 0)
            pooled = (out * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            scores = network.head(pooled)
        else:
            scores = network(h, batch.types)
        cross_entropy(scores, labels[rows]).backward()  # type: ignore[no-untyped-call]

    def epoch(pad: int) -> None:
        for rows in bucketed:
            step(rows, pad)

    fast, slow = interleaved(lambda: epoch(0), lambda: epoch(padded_to))
    mean = float(tokens.lengths.float().mean())
    told = f"training: {examples} examples of {name}, mean length {mean:.1f}"
    return [
        Figure(told, examples / fast, unit="examples/s"),
        Figure(
            f"  padding to {padded_to} over buckets of a length", slow / fast, 2.0, 1.5, more=True
        ),
    ]


def p3eft(batch: int = 32) -> list[Figure]:
    """A step of P³EFT against its own floor of n forwards and n·m backwards, and the plain step."""
    data = os.environ.get("LEAKBOARD_DATA")
    texts = load_task("sst2" if data else "reviews", Path(data) if data else None).splits["train"]
    backbone = load_backbone("minilm")
    train = backbone.encode(texts.texts[:batch], None, 64)
    rows, labels = torch.arange(batch), torch.arange(batch) % 2

    def session() -> Session:
        return Session(
            train=train,
            labels=labels,
            classes=2,
            backbone=backbone,
            cut=0,
            wire=Wire(CHANNELS, {}),
            seeds=Seeds.of(0),
            settings=TrainSettings(batch_size=batch),
            progress=quietly,
        )

    def step(defense: Defense) -> Callable[[], object]:
        taken: list[Callable[[torch.Tensor, int], float]] = []
        given = session()
        given.fit = lambda one, *_: taken.append(one)  # type: ignore[method-assign]
        defense.fine_tune(given)
        return lambda: taken[0](rows, 0)

    calls = P3EFT(backprop="calls")
    client = Api(session(), keep=calls.adapters)
    adapters = [client.adapter(i) for i in range(calls.adapters)]
    server = Server(client.network, client.autocast, calls.adapters)
    gradient, h = torch.ones(batch, backbone.width), torch.randn(batch, backbone.width)

    def floor() -> None:
        dropout = client.dropout()
        asked = [Call(train, rows, adapter, dropout=dropout) for adapter in adapters]
        for call in asked:
            server.forward(call)
        for call in asked * calls.vectors:
            server.backward(call, gradient)

    def fits() -> None:
        for _ in adapters:
            adversarial(h, labels)

    ways = [step(calls), step(P3EFT(backprop="combined")), step(NoDefense()), floor, fits]
    for way in ways:
        way()
    full, once, plain, least, fitting = interleaved(*ways, repeats=5)
    told = f"p3eft: {calls.adapters} adapters, {calls.vectors} vectors, a batch of {batch}"
    return [
        Figure(f"{told}: step by calls over its calls alone", full / least, 1.3, 1.6),
        Figure("  over the plain step", full / plain),
        Figure("  combined step over the plain step", once / plain),
        Figure("  share of the probes' fits in a step by calls", fitting / full, 0.2, 0.3),
    ]


def dpsgd(batch: int = 32, repeats: int = 15, batches: int = 3) -> list[Figure]:
    """Steps of DP-SGD on LoRA and head of MiniLM: against the plain step on the same batch, and on batches as
    they are drawn, whatever the lengths, of which all examples pass at once or those of similar length."""
    data = os.environ.get("LEAKBOARD_DATA")
    texts = load_task("sst2" if data else "reviews", Path(data) if data else None).splits["train"]
    backbone = load_backbone("minilm")
    every = backbone.encode(texts.texts[: 16 * batch], None, 64)
    tokens = every.take(torch.arange(batch))
    labels = torch.arange(len(every)) % 2
    draws = dp_sgd.poisson_batches(
        len(every), batch / len(every), batches, np.random.default_rng(0)
    )

    def made() -> tuple[Network, torch.optim.Optimizer]:
        network = Network(backbone, 0, 2, TrainSettings(), slice(None)).train()
        return network, torch.optim.AdamW(network.trained(), 1e-3)

    (ours, own), (theirs, other) = made(), made()
    with PrivateGradients(ours, 1.0, 1.0, batch, np.random.default_rng(0)) as gradients:

        def noisy(parts: Iterable[tuple[Tokens, Tensor]]) -> None:
            for part, its_labels in parts:
                gradients.add(losses(ours, part, its_labels))
            gradients.release()
            own.step()
            own.zero_grad()

        def plain() -> None:
            losses(theirs, tokens, labels[:batch]).mean().backward()  # type: ignore[no-untyped-call]
            other.step()
            other.zero_grad()

        def drawn(size: int) -> None:
            for rows in draws:
                parts = passes(rows, every.lengths, size)
                noisy((every.take(part), labels[part]) for part in parts)

        ways = (lambda: noisy([(tokens, labels[:batch])]), plain)
        seconds(*ways)
        taken = seconds(*ways, repeats=repeats)
        alike, whole = interleaved(lambda: drawn(CPU_PASS_SIZE), lambda: drawn(len(every)))

    ratios = sorted(one / two for one, two in zip(*taken, strict=True))
    told = f"dpsgd: a batch of {batch}, mean length {float(tokens.lengths.float().mean()):.1f}"
    return [
        Figure(f"{told}: over the plain step", statistics.median(ratios), 1.6, 2.2),
        Figure(f"  as drawn, {CPU_PASS_SIZE} of similar length at once over all", alike / whole),
    ]


def rapt(batch: int = 32, length: int = 20) -> list[Figure]:
    """A step of RAPT with a prompt against a plain step on texts as long as prompt, plain tokens and text."""
    data = os.environ.get("LEAKBOARD_DATA")
    texts = load_task("sst2" if data else "reviews", Path(data) if data else None).splits["train"]
    backbone = load_backbone("minilm")
    short = backbone.encode(texts.texts[:batch], None, 64)
    rows, labels = torch.arange(batch), torch.arange(batch) % 2

    def step(defense: Defense, tokens: Tokens) -> Callable[[], object]:
        given = Session(
            train=tokens,
            labels=labels,
            classes=2,
            backbone=backbone,
            cut=0,
            wire=Wire(CHANNELS | defense.sends, {}),
            seeds=Seeds.of(0),
            settings=TrainSettings(batch_size=batch),
            progress=quietly,
        )
        taken: list[Callable[[torch.Tensor, int], float]] = []
        given.fit = lambda one, *_, **__: taken.append(one)  # type: ignore[method-assign]
        defense.fine_tune(given)
        return lambda: taken[0](rows, 0)

    def longer(more: int) -> Tokens:
        """The same texts with some words in front."""
        at = torch.repeat_interleave(short.ids.starts, more)
        lengths = short.lengths + more
        first = torch.cat([at.view(batch, more), short.ids.padded().long()], 1)
        kept = torch.arange(first.shape[1]) < lengths[:, None]
        ids = Ragged(first[kept], lengths)
        nothing = torch.zeros(len(ids.values), dtype=torch.long)
        return Tokens(ids, nothing, nothing.bool())

    ours = RAPT(eta=None, kind="prompt", length=length)
    ways = [
        step(ours, short),
        step(NoDefense(), longer(length + ours.plain)),
        step(RAPT(eta=None), short),
        step(NoDefense(), longer(ours.plain)),
    ]
    for way in ways:
        way()
    prompt, plain, prefix, shorter = interleaved(*ways, repeats=5)
    told = f"rapt: a prompt of {length}, {ours.plain} plain tokens, a batch of {batch}"
    return [
        Figure(f"{told}: over the plain step at equal length", prompt / plain, 1.3, 1.6),
        Figure("  with a prefix, the same", prefix / shorter, 1.3, 1.6),
    ]
