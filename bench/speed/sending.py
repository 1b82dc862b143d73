"""Noise on tokens, and recording what is sent."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from leakboard.attacks.aia_mlp import mean_vectors
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.backbones import Neighbours, Ragged, load_backbone
from leakboard.bench.contracts import Channel
from leakboard.bench.defending import dx_noise, privatise_tokens
from leakboard.bench.exchange import MEMORY, Wire
from leakboard.bench.methods import Knowledge
from leakboard.bench.speed import interleaved
from leakboard.bench.speed.figures import Figure

ETA = 75.0


def snap(tokens: int = 4_096) -> list[Figure]:
    """Privatise and snap tokens, against FAISS's search alone and the best chunked torch.cdist."""
    embeddings = load_backbone("minilm").embeddings
    neighbours = Neighbours(embeddings)
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(len(embeddings), size=tokens))
    noisy = embeddings.numpy()[ids.numpy()] + dx_noise(tokens, embeddings.shape[1], ETA, rng)

    def by_cdist(chunk: int) -> Callable[[], object]:
        parts = torch.split(torch.from_numpy(noisy), chunk)
        return lambda: torch.cat([torch.cdist(part, embeddings).argmin(1) for part in parts])

    chunks = (256, 1024, 4096)
    times = interleaved(
        lambda: privatise_tokens(ids, embeddings, neighbours, ETA, rng),
        lambda: neighbours.index.search(noisy, 1),
        *[by_cdist(chunk) for chunk in chunks],
    )
    ours, search, *cdist = times
    tracemalloc.start()
    privatise_tokens(ids, embeddings, neighbours, ETA, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return [
        Figure(f"snap: {tokens:,} tokens of MiniLM", tokens / ours, unit="tokens/s"),
        Figure("  over FAISS's flat search alone", ours / search, 1.2, 1.5),
        Figure("  the best torch.cdist over it", min(cdist) / ours, 1.0, 0.8, more=True),
        Figure("  peak of its arrays", peak / 2**20, 300, 600, "MiB"),
    ]


def recording(examples: int = 67_349, tokens: int = 13, batch: int = 32) -> list[Figure]:
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
    allowed = MEMORY / 2**20
    # A whole round is read at once, and the rest in parts.
    bounds = {"recording": allowed, "eia-nn": allowed, "means of aia-mlp": allowed}
    found = []
    for what, work in ({"recording": send} | read).items():
        before, peak = _peak(work)
        most = bounds.get(what, size + allowed)
        found.append(
            Figure(f"  memory that {what} adds", peak - before, 1.25 * most, 2 * most, "MiB")
        )
    return [Figure(f"recording: {examples:,} sentences", size, unit="MiB"), *found]


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
