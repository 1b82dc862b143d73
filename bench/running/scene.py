"""What one cell is run on: what was planned, the texts it sees, and the public model."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from leakboard.bench.backbones import Backbone
from leakboard.bench.contracts import Cell, Progress, Seeds, quietly
from leakboard.bench.exchange import Session, Tuned, Wire
from leakboard.bench.running.inputs import Inputs, public_of
from leakboard.bench.running.plan import Plan, Planned
from leakboard.bench.tasks import OWN


@dataclass(frozen=True)
class Scene:
    """A cell with everything in place; its planned pairings are the attacks that are let loose."""

    planned: Planned
    inputs: Inputs
    backbone: Backbone
    progress: Progress = quietly
    workers: int = 1
    """How many cells run at once on the machine."""
    secret: str = ""
    """From which the customer's secrets are drawn; nothing that an attack gets leads here."""
    tuned: Tuned | None = None
    """What came of fine-tuning, where that is over: whoever may ask the customer's side asks this."""

    @property
    def cell(self) -> Cell:
        return self.planned.cell

    @property
    def classes(self) -> int:
        """0 for language modelling."""
        return len(self.inputs.task.labels)

    @property
    def seeds(self) -> Seeds:
        return Seeds.of(self.cell.seed, self.cell.shadow, self.secret)

    def session(self, wire: Wire, seeds: Seeds | None = None) -> Session:
        """What the defense is given.

        Args:
            seeds: others than the cell's.
        """
        train = self.inputs.task.splits["train"]
        return Session(
            train=self.inputs.tokens["train"],
            labels=torch.from_numpy(train.labels),
            classes=self.classes,
            backbone=self.backbone,
            cut=self.cell.cut,
            wire=wire,
            seeds=seeds or self.seeds,
            settings=self.cell.train,
            progress=self.progress,
            texts=train,
            public=public.tokens if (public := self.inputs.public.get(OWN)) else None,
            canaries=self.inputs.planted.canaries or {},
        )


def scene_of(plan: Plan, planned: Planned, progress: Progress = quietly) -> Scene:
    """One cell of a plan by itself; its texts are tokenised here."""
    backbone = plan.backbones[planned.cell.model_hash]
    task = plan.tasks[planned.cell.data_hash]
    public = public_of(planned.cell, task, backbone, plan.public)
    inputs = Inputs.of(planned.cell, task, backbone, public, plan.secret)
    return Scene(planned, inputs, backbone, progress, secret=plan.secret)
