"""Log-probabilities of many texts with common prefixes, by one pass through their prefix tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakboard.bench.backbones import cache_argument, cast_weight, compute_dtype
from leakboard.bench.contracts import Ints, LeakboardError

MEMORY = 64 * 2**20
"""Default limit in bytes of keys, values and scores in memory at once."""
WIDTH = 16
"""Number of siblings in one row of the model's input, masked from each other."""
PIECE = 8
"""Number of places whose scores are summed at once, so that they fit into the processor's cache."""
COPIES = 3
"""Number of copies of a block's keys and values in memory while the model computes."""


@dataclass(frozen=True)
class Level:
    """Nodes of a prefix tree at one depth; children of one parent are adjacent.

    Attributes:
        tokens: [n] token of each node.
        candidate: [n] candidate whose text ends at the node, or −1.
        first: [n] index of the first child in the next level.
        children: [n] number of children.
    """

    tokens: Ints
    candidate: Ints
    first: Ints
    children: Ints


@dataclass(frozen=True)
class Tree:
    """Candidates as a prefix tree.

    Attributes:
        stem: common first tokens of all candidates.
        levels: nodes after the stem, by depth.
    """

    stem: list[int]
    levels: list[Level]

    @staticmethod
    def of(ids: NDArray[np.int32], form: str) -> Tree:
        """The tree of token ids [N, L] with −1 after the end of a text.

        Raises:
            LeakboardError: two candidates have equal tokens, or candidates have no common first token.
        """
        differ = (ids != ids[0]).any(0)
        common = int(differ.argmax()) if differ.any() else ids.shape[1]
        if common == 0:
            raise LeakboardError(
                f"canary '{form}': its candidates have no common first token. Put a word in front of {{digits}}"
            )
        order = np.lexsort(ids[:, common:].T[::-1]) if differ.any() else np.arange(len(ids))
        ids = ids[order]
        lengths = (ids >= 0).sum(1)
        new = np.zeros(len(ids), dtype=bool)
        new[0] = True
        starts: list[Ints] = []
        for column in ids.T[common:]:
            new[1:] |= column[1:] != column[:-1]
            starts.append(np.flatnonzero(new & (column >= 0)))
        if not new.all():
            raise LeakboardError(
                f"canary '{form}': the tokeniser gives different digits the same tokens, so they cannot be ranked. "
                "Choose another model"
            )
        levels = []
        for depth, start in enumerate(starts):
            after = starts[depth + 1] if depth + 1 < len(starts) else np.zeros(0, dtype=np.int64)
            parent = np.searchsorted(start, after, side="right") - 1
            children = np.bincount(parent, minlength=len(start))
            ends = lengths[start] == common + depth + 1
            levels.append(
                Level(
                    tokens=ids[start, common + depth].astype(np.int64),
                    candidate=np.where(ends, order[start], -1),
                    first=children.cumsum() - children,
                    children=children,
                )
            )
        return Tree([int(token) for token in ids[0, :common]], levels)


@dataclass(frozen=True)
class KeyValues:
    """Keys and values by layer, [r, H, t + w, d]: rows of w siblings after t shared ancestors.

    Attributes:
        row, column: [n] position of each node.
    """

    layers: list[tuple[Tensor, Tensor]]
    shared: int
    row: Tensor
    column: Tensor

    @staticmethod
    def of(cache: Any, shared: int, row: Tensor, column: Tensor) -> KeyValues:
        return KeyValues(
            [(layer.keys, layer.values) for layer in cache.layers], shared, row, column
        )

    @property
    def bytes_per_token(self) -> int:
        return sum(2 * kept.shape[1] * kept.shape[3] * kept.itemsize for kept, _ in self.layers)

    def take(self, nodes: Tensor) -> Any:
        """A cache with one row per node: its ancestors and itself."""
        from transformers import DynamicCache  # slow to import

        nodes = nodes.to(self.row.device)
        row, at = self.row[nodes], self.shared + self.column[nodes]
        cache = DynamicCache()
        for i, layer in enumerate(self.layers):
            pair = (
                torch.cat([kept[:, :, : self.shared][row], kept[row, :, at][:, :, None]], 2)
                for kept in layer
            )
            cache.update(*pair, i)
        return cache


class Walk:
    """Depth-first walk through a tree, in blocks of nodes of equal depth.

    Args:
        model: a causal base model, in evaluation mode.
        head: [V, d] output embeddings.
        memory: limit in bytes of keys, values and scores; a single row may exceed it. It is raised to half the size of
            the output layer, which every step reads.
    """

    def __init__(self, model: Any, head: Tensor, tree: Tree, memory: int = MEMORY) -> None:
        self.model, self.head, self.levels, self.stem = model, head, tree.levels, tree.stem
        self.memory = max(memory, head.nbytes // 2)
        self.found = np.full(sum((level.candidate >= 0).sum() for level in tree.levels), np.nan)

    def run(self) -> NDArray[np.float64]:
        """[N] −ln p of every candidate given its first token."""
        from transformers import DynamicCache

        stem = torch.tensor([self.stem], device=self.head.device)
        cache = DynamicCache()
        out = self.model(input_ids=stem, **cache_argument(cache), use_cache=True)
        hidden, last = out.last_hidden_state[0], len(self.stem) - 1
        costs = self.surprise(hidden[:-1], np.arange(last), np.array(self.stem[1:], dtype=np.int64))
        only = torch.zeros(1, dtype=torch.long, device=stem.device)
        past = KeyValues.of(cache, last, only, only)
        nodes = np.arange(len(self.levels[0].tokens))
        self.visit(0, nodes, np.zeros_like(nodes), np.array([costs.sum()]), hidden[-1:], past)
        return self.found

    def visit(
        self,
        depth: int,
        nodes: Ints,
        owner: Ints,
        costs: NDArray[np.float64],
        hidden: Tensor,
        past: KeyValues,
    ) -> None:
        """Scores nodes of one level and their descendants.

        Args:
            nodes: [n] in the order of their parents.
            owner: [n] index of the parent of each node.
            costs: [p] −ln p of the text up to each parent.
            hidden: [p, d] the model's output at each parent.
            past: keys and values of the parents.
        """
        level = self.levels[depth]
        costs = costs[owner] + self.surprise(hidden, owner, level.tokens[nodes])
        ends = level.candidate[nodes] >= 0
        self.found[level.candidate[nodes[ends]]] = costs[ends]
        inner = level.children[nodes] > 0
        nodes, owner, costs = nodes[inner], owner[inner], costs[inner]
        # Up to WIDTH siblings form a row. The widest rows come first, so that there is little padding.
        column = (np.arange(len(nodes)) - np.searchsorted(owner, owner)) % WIDTH
        row = np.cumsum(column == 0) - 1
        widths = np.bincount(row)
        rank = np.argsort(np.argsort(-widths, kind="stable"), kind="stable")
        order = np.argsort(rank[row], kind="stable")
        nodes, owner, costs, column = nodes[order], owner[order], costs[order], column[order]
        row, widths = rank[row][order], np.sort(widths)[::-1]
        edges = np.concatenate([[0], widths.cumsum()])
        start = 0
        while start < len(widths):
            each = past.bytes_per_token * (past.shared + 1 + widths[start]) * COPIES
            stop = min(len(widths), start + max(1, int(self.memory // len(self.levels) // each)))
            block = slice(edges[start], edges[stop])
            inside = torch.as_tensor(row[block] - start), torch.as_tensor(column[block])
            cache = past.take(torch.as_tensor(owner[edges[start:stop]]))
            self.enter(depth, nodes[block], costs[block], inside, int(widths[start]), cache)
            start = stop

    def enter(
        self,
        depth: int,
        nodes: Ints,
        costs: NDArray[np.float64],
        inside: tuple[Tensor, Tensor],
        width: int,
        cache: Any,
    ) -> None:
        """Evaluates the model at inner nodes, and visits their children.

        Args:
            inside: row [n] and column [n] of each node in the block.
            cache: keys and values of the ancestors, by row.
        """
        level, device = self.levels[depth], self.head.device
        row, column = (index.to(device) for index in inside)
        shared, rows = cache.get_seq_length(), int(row[-1]) + 1
        tokens = torch.zeros(rows, width, dtype=torch.long, device=device)
        tokens[row, column] = torch.as_tensor(level.tokens[nodes], device=device)
        least = torch.finfo(self.model.dtype).min
        mask = torch.zeros(width, shared + width, dtype=self.model.dtype, device=device)
        mask[:, shared:] = torch.full_like(mask[:, shared:], least).fill_diagonal_(0)
        out = self.model(
            input_ids=tokens,
            position_ids=torch.full_like(tokens, shared),
            attention_mask=mask.expand(rows, 1, -1, -1),
            **cache_argument(cache),
            use_cache=True,
        )
        past = KeyValues.of(cache, shared, row, column)
        counts = level.children[nodes]
        owner = np.repeat(np.arange(len(nodes)), counts)
        skipped = level.first[nodes] - (counts.cumsum() - counts)
        children: Ints = (np.arange(len(owner)) + skipped[owner]).astype(np.int64)
        self.visit(depth + 1, children, owner, costs, out.last_hidden_state[row, column], past)

    def surprise(self, hidden: Tensor, owner: Ints, tokens: Ints) -> NDArray[np.float64]:
        """[n] −ln p of tokens [n], each given the hidden state `owner` [n, ascending] of [p, d]."""
        step = max(1, self.memory // (4 * COPIES * len(self.head)))
        surprises = []
        for at in range(0, len(hidden), step):
            rows = slice(*np.searchsorted(owner, [at, at + step]))
            total, of_token = self._scored(hidden[at : at + step], owner[rows] - at, tokens[rows])
            surprises.append((total - of_token).cpu().double().numpy())
        return np.concatenate(surprises) if surprises else np.zeros(0)

    def _scored(self, hidden: Tensor, owner: Ints, tokens: Ints) -> tuple[Tensor, Tensor]:
        """[n] log-sum-exp of the scores of all words at the place of each token, and [n] the token's score."""
        place, token = (torch.as_tensor(each, device=hidden.device) for each in (owner, tokens))
        dtype = compute_dtype(hidden)
        with torch.autocast(hidden.device.type, enabled=False):
            scores = hidden.to(dtype) @ cast_weight(self.head, dtype).T
            full = torch.promote_types(dtype, torch.float32)
            total = torch.cat([some.to(full).logsumexp(1) for some in torch.split(scores, PIECE)])[
                place
            ]
            if dtype == self.head.dtype:
                return total, scores[place, token].to(full)
            # Scores in bfloat16 have eight bits, which cannot separate siblings.
            return total, (hidden.to(self.head.dtype)[place] * self.head[token]).sum(1)
