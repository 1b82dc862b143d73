"""Noise on tokens, and recording of sent messages."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarking import Figure

from leakboard.attacks.aia_mlp import mean_vectors
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.backbones import Neighbours, Ragged
from leakboard.bench.contracts import Channel
from leakboard.bench.defending import dx_noise, privatise_tokens
from leakboard.bench.exchange import Wire
from leakboard.bench.exchange.wire import MEMORY
from leakboard.bench.methods import Knowledge

ETA = 75.0
TOKENS = 4_096
EXAMPLES, LENGTH, BATCH = 67_349, 13, 32
"""Those of SST-2: sentences, tokens of a mean one; and of a message."""


def test_snap(comparison, minilm):
    """Privatise and snap tokens, against FAISS's search alone and torch.cdist in the best chunks."""
    embeddings = minilm.embeddings
    neighbours = Neighbours(embeddings)
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(len(embeddings), size=TOKENS))
    noisy = embeddings.numpy()[ids.numpy()] + dx_noise(TOKENS, embeddings.shape[1], ETA, rng)

    def snap() -> None:
        privatise_tokens(ids, embeddings, neighbours, ETA, rng)

    def cdist(chunk: int) -> Callable[[], object]:
        parts = torch.split(torch.from_numpy(noisy), chunk)
        return lambda: torch.cat([torch.cdist(part, embeddings).argmin(1) for part in parts])

    search = lambda: neighbours.index.search(noisy, 1)  # noqa: E731
    comparison.measure(snap, search, *map(cdist, (256, 1024, 4096)))
    tracemalloc.start()
    snap()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    best = 1 / max(map(comparison.ratio, (1, 2, 3)))
    comparison.report(
        Figure(f"snap: {TOKENS:,} tokens of MiniLM", TOKENS / comparison.median, unit="tokens/s"),
        Figure("  over FAISS's flat search alone", comparison.ratio(0), 1.2, 1.5),
        Figure("  the best torch.cdist over it", best, 1.0, 0.8, more=True),
        Figure("  peak of its arrays", peak / 2**20, 300, 600, "MiB"),
    )


@pytest.fixture(scope="module")
def wire(minilm):
    """A wire on which nothing has been sent."""
    minilm.neighbours.nearest(minilm.embeddings[:100])  # loads FAISS
    return Wire(frozenset({Channel.REPRESENTATIONS}), {"train": np.arange(EXAMPLES)}, 2**34)


@pytest.mark.parametrize("work", ["recording", "eia-nn", "means of aia-mlp", "a whole round"])
def test_memory(comparison, minilm, wire, work):
    """Memory while vectors of all sentences of SST-2 are recorded, and while attacks read them.

    The sentences are random and of equal length, sent as rows of E; their words follow Zipf's law. A whole
    round is read at once, and everything else in parts.
    """
    rng = np.random.default_rng(0)
    knowledge = Knowledge(2, "cpu", base=minilm)

    def send() -> None:
        for rows in torch.split(torch.from_numpy(rng.permutation(EXAMPLES)), BATCH):
            words = rng.zipf(1.3, len(rows) * LENGTH) % len(minilm.embeddings)
            vectors = minilm.embeddings[torch.from_numpy(words)]
            lengths = torch.full((len(rows),), LENGTH)
            wire.send(Channel.REPRESENTATIONS, Ragged(vectors, lengths), rows)

    works = {
        "recording": send,
        "eia-nn": lambda: NearestNeighbour().guess(wire.transcript(), knowledge, rng),
        "means of aia-mlp": lambda: mean_vectors(
            wire.transcript(), Channel.REPRESENTATIONS, knowledge
        ),
        "a whole round": lambda: wire.transcript().collect(Channel.REPRESENTATIONS),
    }
    if work != "recording" and not wire.transcript().messages:
        send()
    peak = comparison.measure(lambda: added_memory(works[work]), rounds=1)
    size = EXAMPLES * LENGTH * minilm.width * 4 / 2**20 if work == "a whole round" else 0
    most = size + MEMORY / 2**20
    name = f"memory that {work} adds, {EXAMPLES:,} sentences"
    comparison.report(Figure(name, peak, 1.25 * most, 2 * most, "MiB"))


def added_memory(work: Callable[[], object]) -> float:
    """MiB that a work adds to this process at its peak, without pages of files. Linux only."""

    def now() -> float:
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    before, peaks, done = now(), [now()], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peaks.append(now())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return max(peaks) - before
