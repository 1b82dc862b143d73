"""Exact nearest rows of an embedding matrix: by FAISS's flat L2 index on a CPU, by torch's distances on a GPU."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leakboard.bench.contracts import Ints, MissingExtra

CHUNK = 8192
"""Number of queries per search, which bounds memory."""


class Neighbours:
    """Nearest rows of `rows` [V, d] in Euclidean distance.

    Raises:
        MissingExtra: on a CPU, FAISS is not installed.
    """

    def __init__(self, rows: torch.Tensor, device: str = "cpu") -> None:
        rows = rows.detach().float()
        self.rows = np.ascontiguousarray(rows.cpu().numpy())
        # FAISS for GPUs comes for few versions of CUDA, and computes there what torch does.
        self.there = None if device == "cpu" else rows.to(device)
        if self.there is None:
            self.index: Any = _faiss().IndexFlatL2(self.rows.shape[1])
            self.index.add(self.rows)

    def nearest(self, queries: NDArray[Any] | torch.Tensor) -> Ints:
        """[n] index of the nearest row to each of `queries` [n, d]."""
        if isinstance(queries, torch.Tensor):
            queries = queries.detach().float().cpu().numpy()
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        rows = [self._search(queries[at : at + CHUNK]) for at in range(0, len(queries), CHUNK)]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)

    def _search(self, queries: NDArray[np.float32]) -> Ints:
        if self.there is None:
            found: Ints = self.index.search(queries, 1)[1][:, 0]
            return found
        distances = torch.cdist(torch.from_numpy(queries).to(self.there.device), self.there)
        return distances.argmin(1).cpu().numpy()

    def nearest_repeated(self, queries: NDArray[Any]) -> Ints:
        """As `nearest`, for queries with many duplicates or many rows of the matrix; each other query is searched once."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        distinct, inverse = dict[bytes, int](), list[int]()
        for query in queries:
            inverse.append(distinct.setdefault(query.tobytes(), len(distinct)))
        different = np.frombuffer(b"".join(distinct), np.float32).reshape(-1, self.rows.shape[1])
        rows = np.array([self._known.get(hash(one), 0) for one in distinct], np.int64)
        # Different vectors may have equal hashes.
        far = (self.rows[rows] != different).any(1)
        rows[far] = self.nearest(different[far])
        return rows[inverse] if inverse else rows

    @cached_property
    def _known(self) -> dict[int, int]:
        """First index of each row, by the hash of its bytes."""
        last = range(len(self.rows) - 1, -1, -1)
        return {hash(self.rows[at].tobytes()): at for at in last}


def manhattan(queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """[m, k] L1 distances of `queries` [m, d] from `rows` [k, d]; on a processor FAISS takes a sixth of torch's time.

    Raises:
        MissingExtra: FAISS is not installed.
    """
    if queries.device.type != "cpu":
        return torch.cdist(queries, rows, 1)
    faiss = _faiss()
    both = (np.ascontiguousarray(each.float().numpy()) for each in (queries, rows))
    return torch.from_numpy(faiss.pairwise_distances(*both, metric=faiss.METRIC_L1))


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("FAISS (nearest-neighbour search)", "cpu") from None
    return faiss
