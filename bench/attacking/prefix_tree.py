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
"""Bytes of keys, values and scores that a walk holds at a time, by default."""
WIDTH = 16
"""Siblings that go through the model in one row, each blind to the others."""
PIECE = 8
"""Places whose scores of all words are summed at a time: of a long vocabulary so many stay in a cache."""
COPIES = 3
"""How often a block's keys and values are in memory while the model computes."""


@dataclass(frozen=True)
class Level:
    """Nodes of a prefix tree at one depth, those of one parent side by side.

    Attributes:
        tokens: [n] the token at each node.
        candidate: [n] whose text ends here, or −1.
        first: [n] its first child in the next level.
        children: [n] how many it has.
    """

    tokens: Ints
    candidate: Ints
    first: Ints
    children: Ints


@dataclass(frozen=True)
class Tree:
    """Candidates as a prefix tree.

    Attributes:
        stem: the tokens with which all of them begin.
        levels: the nodes behind it; those of `levels[0]` are the children of the stem.
    """

    stem: list[int]
    levels: list[Level]

    @staticmethod
    def of(ids: NDArray[np.int32], form: str) -> Tree:
        """The tree of token ids [N, L], −1 behind the end of a text.

        Raises:
            LeakboardError: two candidates of the same tokens, or nothing in common to start from.
        """
        differ = (ids != ids[0]).any(0)
        common = int(differ.argmax()) if differ.any() else ids.shape[1]
        if common == 0:
            raise LeakboardError(
                f"canary '{form}': its candidates begin with different tokens, and nothing stands "
                "before them. Put a word in front of {digits}"
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
                f"canary '{form}': the tokeniser makes the same tokens of different digits, so "
                "no rank can be told. Choose another model"
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
    """Keys and values of rows [r, H, t + w, d] of w siblings behind t shared ancestors, by layer.

    Attributes:
        row, column: [n] where each node stands.
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
        from transformers import DynamicCache  # here, since it takes a second to load

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
    """Depth-first through a tree, in blocks of nodes of equal depth.

    Args:
        model: a causal base model, in evaluation mode.
        head: [V, d] output embeddings.
        memory: bytes of keys, values and scores; a single row may exceed it. Where the output layer alone
            takes more than twice that, half of the layer: reading it is what a step costs.
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
        told = self.surprise(hidden[:-1], np.arange(last), np.array(self.stem[1:], dtype=np.int64))
        only = torch.zeros(1, dtype=torch.long, device=stem.device)
        past = KeyValues.of(cache, last, only, only)
        nodes = np.arange(len(self.levels[0].tokens))
        self.visit(0, nodes, np.zeros_like(nodes), np.array([told.sum()]), hidden[-1:], past)
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
        """Scores nodes of one level and all that is below them.

        Args:
            nodes: [n] in the order of their parents.
            owner: [n] which of the p parents below.
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
        # Up to WIDTH siblings make a row; the widest rows come first, so that little is padding.
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
        """Puts inner nodes through the model, and visits their children.

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
        found = []
        for at in range(0, len(hidden), step):
            here = slice(*np.searchsorted(owner, [at, at + step]))
            total, told = self._scored(hidden[at : at + step], owner[here] - at, tokens[here])
            found.append((total - told).double().cpu().numpy())
        return np.concatenate(found) if found else np.zeros(0)

    def _scored(self, hidden: Tensor, owner: Ints, tokens: Ints) -> tuple[Tensor, Tensor]:
        """[n] ln of the sum of what all words score at the places of tokens, and what these do."""
        own, token = (torch.as_tensor(each, device=hidden.device) for each in (owner, tokens))
        dtype = compute_dtype(hidden)
        with torch.autocast(hidden.device.type, enabled=False):
            scores = hidden.to(dtype) @ cast_weight(self.head, dtype).T
            full = torch.promote_types(dtype, torch.float32)
            total = torch.cat([some.to(full).logsumexp(1) for some in torch.split(scores, PIECE)])[
                own
            ]
            if dtype == self.head.dtype:
                return total, scores[own, token].to(full)
            # A score of bfloat16 has eight bits, by which siblings could hardly be told apart.
            return total, (hidden.to(self.head.dtype)[own] * self.head[token]).sum(1)
