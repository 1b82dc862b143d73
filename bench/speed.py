"""Speed as ratios measured in one run: `python -m bench.speed [NAME …]`, see `main`.

Machines are shared and noisy, so each figure is the median over interleaved repeats of two ways to
do the same thing, and no test depends on one.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attacks.aia_mlp import mean_vectors
from attacks.eia_nn import NearestNeighbour
from attacks.eia_optimise import Optimise
from bench import api, registry
from bench.backbones import load_backbone
from bench.inputs import Inputs
from bench.mechanisms import dx_noise, privatise_tokens
from bench.neighbours import Neighbours
from bench.plan import make_plan
from bench.ragged import Ragged, Tokens
from bench.record import Cost, TrainSettings
from bench.runner import Silent, run_cell
from bench.seeds import Seeds
from bench.session import Network, Session
from bench.suite import Suite, load_suite
from bench.tasks.loading import load_task
from bench.training import length_bucketed
from bench.types import Channel, Defense, Goal, Ints, Knowledge, Message, Transcript
from bench.wire import MEMORY, Wire
from defenses.none import NoDefense
from defenses.p3eft import P3EFT, adversarial
from defenses.sap import SAP

ETA = 75.0
REPEATS = 3


def main(names: Sequence[str]) -> None:
    """Runs the named comparisons, or all of them."""
    known: dict[str, Callable[[], None]] = {
        "snap": snap,
        "training": training,
        "attacks": attacks,
        "inversion": inversion,
        "label-attacks": label_attacks,
        "p3eft": p3eft,
        "recording": recording,
    }
    print(f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    for name in names or known:
        known[name]()


def snap(tokens: int = 65_536) -> None:
    """Privatise and snap tokens, against FAISS's search alone and a chunked torch.cdist."""
    embeddings = load_backbone("minilm").embeddings
    neighbours = Neighbours(embeddings)
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(len(embeddings), size=tokens))
    noisy = embeddings.numpy()[ids.numpy()] + dx_noise(tokens, embeddings.shape[1], ETA, rng)

    def by_cdist(chunk: int) -> Callable[[], object]:
        parts = torch.split(torch.from_numpy(noisy), chunk)
        return lambda: torch.cat([torch.cdist(part, embeddings).argmin(1) for part in parts])

    chunks = (256, 1024, 4096)
    times = _interleaved(
        lambda: privatise_tokens(ids, embeddings, neighbours, ETA, rng),
        lambda: neighbours.index.search(noisy, 1),
        *[by_cdist(chunk) for chunk in chunks],
    )
    ours, search, *cdist = times
    print(f"snap: {tokens} tokens, V = {len(embeddings)}, d = {embeddings.shape[1]}")
    print(f"  privatise and snap: {tokens / ours:,.0f} tokens/s")
    print(f"  of FAISS's flat search alone: {search / ours:.2f}")
    for chunk, seconds in zip(chunks, cdist, strict=True):
        print(f"  times torch.cdist in chunks of {chunk}: {seconds / ours:.2f}")
    for n in (tokens, 2 * tokens):
        more = torch.from_numpy(rng.integers(len(embeddings), size=n))
        tracemalloc.start()
        privatise_tokens(more, embeddings, neighbours, ETA, rng)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"  peak of arrays at {n} tokens: {peak / 2**20:.0f} MiB")


def training(examples: int = 1280, padded_to: int = 64) -> None:
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

    fast, slow = _interleaved(lambda: epoch(0), lambda: epoch(padded_to))
    mean = float(tokens.lengths.float().mean())
    print(f"training: {examples} examples of {name}, mean length {mean:.1f}")
    print(f"  length-bucketed: {examples / fast:,.0f} examples/s")
    print(f"  times padding to {padded_to}: {slow / fast:.2f}")


def attacks() -> None:
    """Share of all attacks and scoring in the time of a cell of the smoke suite."""
    costs = [_smoke_cell() for _ in range(REPEATS)]
    share = statistics.median(cost.attack_seconds / cost.total_seconds for cost in costs)
    print("attacks: one cell of smoke, sap at η = 75")
    print(f"  share of all attacks and scoring: {share:.3f}")


def inversion(cut: int = 2, compared: int = 16) -> None:
    """Inversion by optimisation behind two blocks, against the training of a cell of the smoke suite.

    Then its search among candidates against that among all words: the words found in both.
    """
    data = os.environ.get("LEAKBOARD_DATA")
    name = "sst2" if data else "reviews"
    texts = load_task(name, Path(data) if data else None).splits["dev"].texts
    base = load_backbone("minilm")
    rng = np.random.default_rng(0)

    def found(attack: Optimise, tokens: Tokens, eta: float | None) -> tuple[Ints, float]:
        vectors = SAP(eta=eta).simulate(base, tokens, cut, rng)
        assert vectors is not None
        sent = (np.arange(len(tokens)), vectors.values.numpy(), vectors.lengths.numpy())
        message = Message(Channel.REPRESENTATIONS, "dev", 0, "customer", "vendor", 0, *sent)
        start = time.perf_counter()
        (guess,) = attack.guess(
            Transcript((message,)), Knowledge(2, "cpu", cut, base), np.random.default_rng(0)
        )
        return guess.values[:, 0], time.perf_counter() - start

    print(f"inversion: minilm behind block {cut}, {len(texts)} sentences of {name}")
    tokens = base.encode(texts, None, 64)
    few = tokens.take(torch.from_numpy(rng.permutation(len(tokens))[:compared]))
    for eta in (None, 50.0):
        cell = _smoke_cell().train_seconds
        words, seconds = found(Optimise(), tokens, eta)
        real = ~tokens.special.numpy()
        right = (words == tokens.ids.values.numpy())[real].mean()
        print(f"  η = {eta or 'none'}: {right:.2%} of tokens, {seconds / len(texts):.3f} s each")
        print(f"    all of them, in trainings of a cell of smoke: {seconds / cell:.2f}")
        both = []
        for candidates in (Optimise().candidates, len(base.embeddings)):
            rng = np.random.default_rng(1)
            both.append(found(Optimise(candidates=candidates), few, eta))
        (narrow, quick), (wide, slow) = both
        same = (narrow == wide)[~few.special.numpy()].mean()
        print(f"    as among all words: {same:.2%} of tokens of {compared}, {slow / quick:.1f}×")


def recording(examples: int = 67_349, tokens: int = 13, batch: int = 32) -> None:
    """Memory while vectors of all sentences of SST-2 are recorded, and while attacks read them.

    Made-up sentences of equal length, sent as rows of E; words are as frequent as Zipf's law has it.
    """
    base = load_backbone("minilm")
    wire = Wire(frozenset({Channel.REPRESENTATIONS}), {"train": np.arange(examples)}, 2**34)
    rng = np.random.default_rng(0)
    knowledge = Knowledge(2, "cpu", base=base)
    read = {
        "eia-nn": lambda: NearestNeighbour().guess(wire.transcript(), knowledge, rng),
        "means of aia-mlp": lambda: mean_vectors(
            wire.transcript(), Channel.REPRESENTATIONS, knowledge
        ),
        "a whole round": lambda: wire.transcript().collect(Channel.REPRESENTATIONS),
    }

    def send() -> None:
        for rows in torch.split(torch.from_numpy(rng.permutation(examples)), batch):
            words = rng.zipf(1.3, len(rows) * tokens) % len(base.embeddings)
            vectors = base.embeddings[torch.from_numpy(words)]
            lengths = torch.full((len(rows),), tokens)
            wire.send(Channel.REPRESENTATIONS, Ragged(vectors, lengths), rows)

    base.neighbours.nearest(base.embeddings[:100])  # loads FAISS
    size = examples * tokens * base.width * 4 / 2**20
    print(
        f"recording: {examples} sentences, {size:.0f} MiB, of which {MEMORY / 2**20:.0f} may stay"
    )
    for what, work in ({"recording": send} | read).items():
        start = time.perf_counter()
        before, peak = _peak(work)
        seconds = time.perf_counter() - start
        print(f"  {what}: from {before:.0f} to at most {peak:.0f} MiB, {seconds:.0f} s")


def _peak(work: Callable[[], object]) -> tuple[float, float]:
    """MiB of memory of this process before and at most during some work, pages of files left out.

    Those the system takes back when it needs them. Linux only.
    """

    def now() -> float:
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    before, seen, done = now(), [now()], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            seen.append(now())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return before, max(seen)


def _smoke_cell() -> Cost:
    """What a cell of the smoke suite takes: SAP at η = 75."""
    plan = make_plan(load_suite("smoke"))
    planned = next(p for p in plan.cells if p.defense.params.get("eta") == ETA)
    backbone = plan.backbones[planned.cell.model_hash]
    inputs = Inputs.of(planned.cell, plan.tasks[planned.cell.data_hash], backbone)
    cost = run_cell(planned, inputs, backbone, planned.pairings, Silent()).cost
    assert cost is not None
    return cost


def label_attacks(examples: int = 4000) -> None:
    """Share of the label attacks over all moments in the time of an undefended cell of one epoch."""
    data = os.environ.get("LEAKBOARD_DATA")
    suite = Suite(
        name="label-attacks",
        task="sst2" if data else "reviews",
        model="minilm",
        limit=examples,
        train=TrainSettings(epochs=1),
        defenses=(registry.defense("none")(),),
        attacks=tuple(
            attack()
            for attack in registry.attacks().values()
            if Goal.LABEL in attack.threat.goals and not attack.costly
        ),
    )
    plan = make_plan(suite, Path(data) if data else None)
    (planned,) = plan.cells
    backbone = plan.backbones[planned.cell.model_hash]
    inputs = Inputs.of(planned.cell, plan.tasks[planned.cell.data_hash], backbone)
    cost = run_cell(planned, inputs, backbone, planned.pairings, Silent()).cost
    assert cost is not None
    print(f"label attacks: {examples} examples of {planned.cell.task}, one epoch")
    print(f"  share of all attacks and scoring: {cost.attack_seconds / cost.total_seconds:.3f}")


def p3eft(batch: int = 32) -> None:
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
            wire=Wire(api.CHANNELS, {}),
            seeds=Seeds.of(0),
            settings=TrainSettings(batch_size=batch),
            progress=Silent().track,
        )

    def step(defense: Defense) -> Callable[[], object]:
        taken: list[Callable[[torch.Tensor, int], float]] = []
        given = session()
        given.fit = lambda one, *_: taken.append(one)  # type: ignore[method-assign]
        defense.fine_tune(given)
        return lambda: taken[0](rows, 0)

    calls = P3EFT(backprop="calls")
    client = api.Api(session(), keep=calls.adapters)
    adapters = [client.adapter(i) for i in range(calls.adapters)]
    server = api.Server(client.network, client.autocast, calls.adapters)
    gradient, h = torch.ones(batch, backbone.width), torch.randn(batch, backbone.width)

    def floor() -> None:
        dropout = client.dropout()
        for adapter in adapters:
            server.forward(train, adapter, dropout)
        for adapter in adapters * calls.vectors:
            server.backward(train, adapter, gradient, dropout)

    def fits() -> None:
        for _ in adapters:
            adversarial(h, labels)

    ways = [step(calls), step(P3EFT(backprop="combined")), step(NoDefense()), floor, fits]
    for way in ways:
        way()
    full, once, plain, least, fitting = _interleaved(*ways, repeats=9)
    print(f"p3eft: {calls.adapters} adapters, {calls.vectors} vectors, a batch of {batch}")
    print(f"  step by calls, over its floor of forwards and backwards: {full / least:.2f}")
    print(f"  step by calls, over the plain step: {full / plain:.2f}")
    print(f"  combined step, over the plain step: {once / plain:.2f}")
    print(
        f"  share of the probes' fits: {fitting / full:.3f} by calls, {fitting / once:.3f} combined"
    )


def _interleaved(*ways: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Median seconds of each way, each repeat running all of them in turn."""
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, taken in zip(ways, seconds, strict=True):
            start = time.perf_counter()
            way()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]


if __name__ == "__main__":
    main(sys.argv[1:])
