"""A suite that runs in seconds."""

from __future__ import annotations

SUITE = """
name: quick
task: reviews
model: tiny-bert
limit: 64
seeds: [0]
train: {epochs: 1, batch_size: 16}
defenses: [none, frozen, sap: {eta: [none, 75]}]
attacks: [eia-nn, logit-gradient, aia-mlp, prior]
"""
