"""What each attack is granted by its threat model, and nothing else."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence

import numpy as np

from bench.attacking import received, with_adapter_gradients
from bench.backbones import Backbone, LanguageModel, Network
from bench.contracts import (
    Channel,
    Knows,
    Seeds,
    Transcript,
)
from bench.exchange import Trainee
from bench.methods import Knowledge, Labelled, Query
from bench.running.inputs import Inputs
from bench.running.pairing import Pairing
from bench.running.plan import Planned
from bench.tasks import OWN

LABELLED = 0.1
"""Share of the recorded training examples that is granted where an attack names none."""


def worked_out(
    planned: Planned,
    transcript: Transcript,
    backbone: Backbone,
    classes: int,
    pairings: Sequence[Pairing],
) -> Transcript:
    """The transcript with what the vendor works out from its calls, where an attack reads that."""
    if not any(Channel.ADAPTER_GRADIENTS in pairing.attack.threat.reads for pairing in pairings):
        return transcript
    network = vendors_network(planned, backbone, classes)
    assert isinstance(network, Network)
    return with_adapter_gradients(transcript, network)


def vendors_network(planned: Planned, backbone: Backbone, classes: int) -> Trainee:
    """The model that serves the calls of an API or is released; what it has to train means nothing.

    Without classes it is a language model.
    """
    if not classes:
        return LanguageModel(backbone, planned.cell.train)
    return Network(backbone, 0, classes, planned.cell.train, slice(None))


def knowledge_for(
    pairing: Pairing,
    planned: Planned,
    inputs: Inputs,
    backbone: Backbone,
    knows: frozenset[Knows] | None = None,
) -> Knowledge:
    """What the attack's threat model grants it, and nothing else; or `knows`, where it is given."""
    knows = pairing.attack.needs if knows is None else knows
    public = inputs.public.get(getattr(pairing.attack, "auxiliary", OWN))
    classes = len(inputs.task.labels)
    return Knowledge(
        classes=classes,
        device=backbone.device,
        cut=planned.cell.cut,
        base=backbone if Knows.BASE_WEIGHTS in knows else None,
        network=functools.partial(vendors_network, planned, backbone, classes)
        if Knows.BASE_WEIGHTS in knows
        else None,
        mechanism=planned.defense if Knows.MECHANISM in knows else None,
        auxiliary=public if Knows.AUXILIARY_TEXT in knows else None,
        labelled=granted(pairing, planned, inputs) if Knows.LABELLED_SHARE in knows else None,
        query=oracle(planned, backbone) if Knows.QUERIES in knows else None,
        vocabulary=len(backbone.embeddings),
        canaries=planned.cell.plant.canaries if planned.cell.plant else (),
        candidates=inputs.candidates,
        shadows=planned.shadows.get(pairing.attack) if Knows.SHADOWS in knows else None,
    )


def granted(pairing: Pairing, planned: Planned, inputs: Inputs) -> Labelled:
    """The attributes of a share of the recorded training examples.

    The rows depend on the seed and the share alone, and those of a smaller share are among those
    of a larger one. Classes are not balanced: one that is rare may be missing.
    """
    recorded = inputs.recorded["train"]
    share = getattr(pairing.attack, "labelled", LABELLED)
    # A stream of its own, so that what an attack draws does not depend on what it is granted.
    rng = np.random.default_rng([Seeds.of(planned.cell.seed).attack, zlib.crc32(b"labelled")])
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


def oracle(planned: Planned, backbone: Backbone) -> Query:
    """The customer's side before it trains: public tokens in, what the vendor would receive out."""
    defense, cut = planned.defense, planned.cell.cut
    return lambda tokens, rng: received(defense, backbone, tokens, cut, rng)
