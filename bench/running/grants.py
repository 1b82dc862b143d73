"""What each attack is granted by its threat model, and nothing else."""

from __future__ import annotations

import zlib
from functools import partial

import numpy as np
import torch

from leakboard.bench.attacking import received, with_adapter_gradients, with_recomputed
from leakboard.bench.backbones import Backbone, LanguageModel, Network, Ragged, Tokens
from leakboard.bench.contracts import (
    Channel,
    Goal,
    Knows,
    Seeds,
    TrainSettings,
    Transcript,
)
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import Auxiliary, Held, Knowledge, Labelled, Query
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.running.scene import Scene
from leakboard.bench.tasks import OWN

LABELLED = 0.1
"""Share of the recorded training examples that is granted where an attack names none."""


def worked_out(scene: Scene, seen: Transcript) -> Transcript:
    """The transcript with what the vendor works out from its calls, where an attack reads that."""
    seen = recomputed(scene, seen)
    if Channel.ADAPTER_GRADIENTS not in _read(scene):
        return seen
    return with_adapter_gradients(seen, _classifier(scene))


def recomputed(scene: Scene, seen: Transcript) -> Transcript:
    """The transcript with the activations that each server computes anew, where an attack reads these."""
    there = Channel.RECOMPUTED in seen.channels
    if there or Channel.RECOMPUTED not in _read(scene) or not scene.classes:
        return seen
    network, known = _classifier(scene), scene.inputs.untrained
    return with_recomputed(seen, network, scene.backbone.segments, known)


def _read(scene: Scene) -> frozenset[Channel]:
    """What is read by the attacks of a cell that have a goal there."""
    paired = [pairing.attack.threat.reads for pairing in scene.planned.pairings if pairing.goals]
    return frozenset().union(*paired)


def _classifier(scene: Scene) -> Network:
    network = vendors_network(scene.backbone, scene.cell.train, scene.classes)
    assert isinstance(network, Network)
    return network


def vendors_network(backbone: Backbone, train: TrainSettings, classes: int) -> Trainee:
    """The model that serves the calls of an API or is released; what it has to train means nothing.

    Without classes it is a language model.
    """
    if not classes:
        return LanguageModel(backbone, train)
    return Network(backbone, 0, classes, train, slice(None))


def knowledge_for(
    pairing: Pairing, scene: Scene, knows: frozenset[Knows] | None = None
) -> Knowledge:
    """What the attack's threat model grants it, and nothing else; or `knows`, where it is given."""
    knows = pairing.attack.needs if knows is None else knows
    planned, inputs, backbone = scene.planned, scene.inputs, scene.backbone
    weights = Knows.BASE_WEIGHTS in knows
    public = candidates = None
    if Knows.AUXILIARY_TEXT in knows:
        public = inputs.public.get(getattr(pairing.attack, "auxiliary", OWN))
    if Goal.MEMBERSHIP in pairing.attack.threat.goals:
        candidates = inputs.candidates
    if Knows.MECHANISM in knows:
        public, candidates = as_trained(scene, public, candidates)
    network = partial(vendors_network, backbone, scene.cell.train, scene.classes)
    plant, asked_for = scene.cell.plant, inputs.prompts
    return Knowledge(
        classes=scene.classes,
        device=backbone.device,
        cut=scene.cell.cut,
        base=backbone if weights else None,
        network=network if weights else None,
        mechanism=planned.defense if Knows.MECHANISM in knows else None,
        auxiliary=public,
        labelled=granted(pairing, scene) if Knows.LABELLED_SHARE in knows else None,
        query=oracle(scene) if Knows.QUERIES in knows else None,
        vocabulary=len(backbone.embeddings),
        canaries=plant.canaries if plant else (),
        candidates=candidates,
        prompts=asked_for.tokens if asked_for and Knows.PREFIXES in knows else None,
        held=held(scene) if Knows.HELD in knows else None,
        shadows=planned.shadows.get(pairing.attack) if Knows.SHADOWS in knows else None,
    )


def as_trained(
    scene: Scene, public: Auxiliary | None, candidates: Auxiliary | None
) -> tuple[Auxiliary | None, Auxiliary | None]:
    """Public texts and candidates with what the defense would have trained on in their place.

    Public text of another task stays as it is: its texts are not at hand.
    """
    inputs, backbone = scene.inputs, scene.backbone
    how = (scene.planned.defense, backbone, scene.cell.train.max_length)
    own, audited = inputs.task.splits.get("auxiliary"), inputs.planted.audited
    if public is not None and public is inputs.public.get(OWN) and own is not None:
        public = inputs.as_trained(public, own, *how)
    if candidates is not None and audited is not None:
        candidates = inputs.as_trained(candidates, audited, *how)
    return public, candidates


def granted(pairing: Pairing, scene: Scene) -> Labelled:
    """The attributes of a share of the recorded training examples.

    The rows depend on the seed and the share alone, and those of a smaller share are among those
    of a larger one. Classes are not balanced: one that is rare may be missing.
    """
    inputs = scene.inputs
    recorded = inputs.recorded["train"]
    share = getattr(pairing.attack, "labelled", LABELLED)
    # A stream of its own, so that what an attack draws does not depend on what it is granted.
    rng = np.random.default_rng([Seeds.of(scene.cell.seed).attack, zlib.crc32(b"labelled")])
    order = rng.permutation(recorded)
    size = max(1, round(share * len(recorded)))
    rows, rest = np.sort(order[:size]), order[size:]
    attributes = {
        name: values
        for name, values in inputs.task.splits["train"].attributes.items()
        if (values[rest] >= 0).any()
    }
    return Labelled(
        rows,
        {name: values[rows] for name, values in attributes.items()},
        {name: len(inputs.task.attributes[name]) for name in attributes},
    )


def held(scene: Scene) -> Held | None:
    """What the customer of a cell predicts by itself of the recorded examples on which utility is measured."""
    split, tuned = scene.cell.evaluate, scene.tuned
    if tuned is None:
        return None
    rows = scene.inputs.recorded[split]
    scores = tuned.alone(scene.inputs.tokens[split].take(torch.from_numpy(rows)))
    return None if scores is None else Held(split, rows, scores.argmax(1).cpu().numpy())


def oracle(scene: Scene) -> Query:
    """The customer's side: public tokens in, what the vendor would receive out.

    As it is after training where that changes it, and somebody trained it here; else as it was before.
    """
    defense, backbone, cut, tuned = (
        scene.planned.defense,
        scene.backbone,
        scene.cell.cut,
        scene.tuned,
    )

    def answer(tokens: Tokens, rng: np.random.Generator) -> Ragged:
        now = tuned.sends(tokens, rng) if tuned else None
        return received(defense, backbone, tokens, cut, rng) if now is None else now

    return answer
