"""Trainings of the rules' small cells, of which those that are alike are made once in a process."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable

from cells import load_tiny

from leakboard.attacks import canary_exposure
from leakboard.bench.attacking import canaries
from leakboard.bench.conformance import trial
from leakboard.bench.conformance.trial import Trial
from leakboard.bench.running import plan

TOLD = {"name", "source", "version", "twins", "model_config"}
"""What a class says of itself, and does not act by."""
MADE: dict[Hashable, object] = {}


def acts_as(cls):
    """The class by which one trains that overrides nothing but what it tells."""
    while not {name for name in vars(cls) if not name.startswith(("_", "model_"))} - TOLD:
        cls = cls.__bases__[0]
    return cls


def remember(monkeypatch):
    """Until the end of a test; one that asks for the same twice gets two trainings, to be compared."""
    asked, trials = Counter(), []

    def once(function):
        def remembered(trial, **how):
            trials.append(trial)  # so that no other one gets its id
            planned, defense = trial.planned, trial.planned.defense
            cls = acts_as(type(defense))
            attacks = tuple(str(p.attack) for p in planned.pairings)
            what = (
                *(function.__name__, cls, planned.cell.model_dump_json(exclude={"defense"})),
                str({name: getattr(defense, name) for name in cls.model_fields}),
                tuple(len(known.tokens) for known in trial.inputs.public.values()),
                attacks if function.__name__ == "record" else (),
                tuple(sorted(how.items())),
            )
            asked[id(trial), what] += 1
            key = (what, asked[id(trial), what])
            if key not in MADE:
                MADE[key] = function(trial, **how)
            return MADE[key]

        return remembered

    def candidates(model, head, tokenizer, form, digits):
        # A million candidates are ranked once for the same weights; a second run of the attack meets them again.
        content = hashlib.sha256(head.numpy().tobytes())
        for value in model.state_dict().values():
            content.update(value.numpy().tobytes())
        key = ("candidates", content.hexdigest(), form, digits)
        if key not in MADE:
            MADE[key] = canaries.candidates(model, head, tokenizer, form, digits)
        return MADE[key]

    # Each trial changes copies of the public model only.
    for module in (trial, plan):
        monkeypatch.setattr(module, "load_backbone", load_tiny)
    monkeypatch.setattr(canary_exposure, "candidates", candidates)
    monkeypatch.setattr(Trial, "train", once(Trial.train))
    monkeypatch.setattr(Trial, "record", once(Trial.record))
