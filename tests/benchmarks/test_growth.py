"""Time and memory at four times the examples, tokens, classes, adapters, words or records. All are long."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import numpy as np
import pytest
import torch
from benchmarking import Figure
from paths import ROOT
from training_steps import session_of, step_of

from leakboard.bench.backbones import Neighbours
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.methods import Defense
from leakboard.bench.records import MANIFEST, Store
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT

pytestmark = pytest.mark.long
TIMES = 4
EXAMPLES, LENGTH, WORDS, RECORDS = 16, 32, 4096, 30


def training(
    base: Backbone,
    defense: Defense,
    examples: int = EXAMPLES,
    length: int = LENGTH,
    classes: int = 2,
) -> Callable[[], object]:
    """A step on random texts of equal length, in batches of `EXAMPLES`."""
    ids = torch.randint(1000, 20_000, (examples * length,))
    zeros = torch.zeros_like(ids)
    tokens = Tokens(Ragged(ids, torch.full((examples,), length)), zeros, zeros.bool())
    labels = torch.arange(examples) % classes
    step = step_of(defense, session_of(tokens, labels, base, classes))
    batches = torch.split(torch.arange(examples), EXAMPLES)
    return lambda: [step(rows) for rows in batches]


def saved_bytes(work: Callable[[], object]) -> int:
    """Bytes of the tensors that autograd keeps for backward passes, each once."""
    found: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        found[tensor.data_ptr()] = tensor.nbytes
        kept.append(tensor)  # its place in memory is not used again
        return tensor

    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work()
    return sum(found.values())


def search(base: Backbone, words: int) -> Callable[[], object]:
    neighbours = Neighbours(base.embeddings[:words])
    vectors = np.random.default_rng(0).standard_normal((2048, base.width)).astype(np.float32)
    return lambda: neighbours.nearest(vectors)


WORKS: dict[str, Callable[[Backbone, int], Callable[[], object]]] = {
    "examples": lambda base, n: training(base, NoDefense(), examples=n * EXAMPLES),
    "tokens of a text": lambda base, n: training(base, NoDefense(), length=n * LENGTH),
    "classes": lambda base, n: training(base, NoDefense(), classes=2 * n),
    "adapters of P³EFT": lambda base, n: training(
        base, P3EFT(adapters=2 * n, weight=0.0, backprop="combined")
    ),
    "words of the vocabulary, in the search": lambda base, n: search(base, n * WORDS),
}


@pytest.mark.parametrize("name", WORKS)
def test_growth(comparison, minilm, name):
    small, large = (WORKS[name](minilm, n) for n in (1, TIMES))
    comparison.measure(large, small)
    saved = saved_bytes(large) / max(1, saved_bytes(small))
    comparison.report(
        Figure(f"growth: time at {TIMES} times the {name}", comparison.ratio()),
        *([Figure("  bytes that are saved for the backward pass", saved)] if saved else []),
    )


def test_growth_by_records(comparison, tmp_path):
    published = ROOT / "results" / "published" / "matrix"
    records = [path for path in sorted(published.glob("*.json")) if path.name != MANIFEST]
    if not records:
        pytest.skip("the published records are not files here")
    works = []
    for number in (RECORDS, TIMES * RECORDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in records[:number]:
            shutil.copy(path, folder)
        works.append(Store(folder).read_all)
    comparison.measure(works[1], works[0])
    name = f"growth: time at {TIMES} times the records, read"
    comparison.report(Figure(name, comparison.ratio()))
