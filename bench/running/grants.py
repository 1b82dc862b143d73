"""Grants each attack exactly the knowledge of its threat model, including its shadow models.

Shadow models are cells of the plan with the data, settings and defense of the target, but with their own coins,
initial values, order and noise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.random import Generator

from leakboard.bench.attacking import simulate_vectors, with_adapter_gradients, with_recomputed
from leakboard.bench.backbones import Backbone, LanguageModel, Network, Ragged, Tokens
from leakboard.bench.contracts import (
    Cell,
    Channel,
    Goal,
    Knows,
    Leak,
    Record,
    Seeds,
    TrainSettings,
    Transcript,
    attack_id,
)
from leakboard.bench.exchange import Trainee
from leakboard.bench.methods import (
    Attack,
    Auxiliary,
    CustomerPredictions,
    Defense,
    Knowledge,
    Labelled,
    Query,
    Shadows,
    spec_of,
)
from leakboard.bench.records import Corrupt
from leakboard.bench.running.cell_context import CellContext
from leakboard.bench.running.pairing import Pairing
from leakboard.bench.running.plan import PlannedCell
from leakboard.bench.tasks import TASK_ITSELF

LABELLED = 0.1
"""Share of the recorded training examples that is granted to an attack without a parameter `labelled`."""
CANDIDATES = 1000
"""Number of candidate texts that are granted to an attack without a parameter `candidates`."""
SCORE_UNIT = 1_000_000
"""Records store scores of shadow models as whole numbers of millionths."""


def with_derived_channels(context: CellContext, seen: Transcript) -> Transcript:
    """Adds to a transcript the channels that the vendor computes from its calls, if an attack reads them."""
    seen = with_recomputed_activations(context, seen)
    if Channel.ADAPTER_GRADIENTS not in _channels_read(context):
        return seen
    return with_adapter_gradients(seen, _classifier(context))


def with_recomputed_activations(context: CellContext, seen: Transcript) -> Transcript:
    """Adds to a transcript the activations that each server can recompute, if an attack reads them."""
    has_them = Channel.RECOMPUTED in seen.channels
    if has_them or Channel.RECOMPUTED not in _channels_read(context) or not context.classes:
        return seen
    network, known = _classifier(context), context.inputs.untrained
    return with_recomputed(seen, network, context.backbone.segments, known)


def _channels_read(context: CellContext) -> frozenset[Channel]:
    """Channels that the attacks of a cell read, except attacks without a goal there."""
    reads = [pairing.attack.threat.reads for pairing in context.planned.pairings if pairing.goals]
    return frozenset().union(*reads)


def _classifier(context: CellContext) -> Network:
    # Over an API the vendor holds what is above the cut if vectors cross in place of texts.
    cut = 0 if Channel.TOKENS in context.planned.defense.sends else context.cell.cut
    network = vendor_network(context.backbone, context.cell.train, context.classes, cut)
    assert isinstance(network, Network)
    return network


def vendor_network(backbone: Backbone, train: TrainSettings, classes: int, cut: int = 0) -> Trainee:
    """The model that serves API calls or is released, with untrained adapters; a language model if `classes` is 0."""
    if not classes:
        return LanguageModel(backbone, train)
    return Network(backbone, cut, classes, train, slice(cut, None))


def granted_mechanism(attack: Attack, defense: Defense) -> Defense:
    """The part of a combination that changes the texts; the whole defense for attacks on labels."""
    if Goal.LABEL in attack.threat.goals:
        return defense
    return defense.input_part


def knowledge_for(
    pairing: Pairing, context: CellContext, knows: frozenset[Knows] | None = None
) -> Knowledge:
    """The knowledge that the threat model of an attack grants, and nothing else; `knows` overrides it."""
    knows = pairing.attack.needs if knows is None else knows
    planned, inputs, backbone = context.planned, context.inputs, context.backbone
    weights = Knows.BASE_WEIGHTS in knows
    public = candidates = None
    if Knows.AUXILIARY_TEXT in knows:
        public = inputs.public.get(getattr(pairing.attack, "auxiliary", TASK_ITSELF))
    if Goal.MEMBERSHIP in pairing.attack.threat.goals:
        candidates = inputs.candidates
    texts = None
    if Knows.CANDIDATES in knows:
        # Attacks on members have a parameter of this name that is no number.
        number = getattr(pairing.attack, "candidates", CANDIDATES)
        number = number if isinstance(number, int) else CANDIDATES
        absent = bool(getattr(pairing.attack, "absent", False))
        texts = inputs.candidate_texts(number, context.seeds.data, absent)
    if Knows.MECHANISM in knows:
        public, candidates = add_trained_form(context, public, candidates)
    network = partial(vendor_network, backbone, context.cell.train, context.classes)
    mechanism = granted_mechanism(pairing.attack, planned.defense)
    plant, prompts = context.cell.plant, inputs.prompts
    return Knowledge(
        classes=context.classes,
        device=backbone.device,
        cut=context.cell.cut,
        base=backbone if weights else None,
        network=network if weights else None,
        mechanism=mechanism if Knows.MECHANISM in knows else None,
        auxiliary=public,
        labelled=labelled_share(pairing, context) if Knows.LABELLED_SHARE in knows else None,
        query=query_oracle(context) if Knows.QUERIES in knows else None,
        vocabulary=len(backbone.embeddings),
        canaries=plant.canaries if plant else (),
        candidates=candidates,
        texts=texts,
        prompts=prompts.tokens if prompts and Knows.PREFIXES in knows else None,
        held=customer_predictions(context) if Knows.HELD in knows else None,
        shadows=planned.shadows.get(pairing.attack) if Knows.SHADOWS in knows else None,
    )


def add_trained_form(
    context: CellContext, public: Auxiliary | None, candidates: Auxiliary | None
) -> tuple[Auxiliary | None, Auxiliary | None]:
    """Adds to public texts and candidates how the defense would have trained on them.

    Public text of another task is unchanged, because its texts are not available.
    """
    inputs, backbone = context.inputs, context.backbone
    how = (context.planned.defense, backbone, context.cell.train.max_length)
    own, audited = inputs.task.splits.get("auxiliary"), inputs.planted.audited
    if public is not None and public is inputs.public.get(TASK_ITSELF) and own is not None:
        public = inputs.as_trained(public, own, *how)
    if candidates is not None and audited is not None:
        candidates = inputs.as_trained(candidates, audited, *how)
    return public, candidates


def labelled_share(pairing: Pairing, context: CellContext) -> Labelled:
    """The attributes of a share of the recorded training examples.

    The rows depend only on the seed and the share; a larger share contains a smaller one. Classes are not
    balanced, so a rare class may be missing.
    """
    inputs = context.inputs
    recorded = inputs.recorded["train"]
    share = getattr(pairing.attack, "labelled", LABELLED)
    # A separate stream, so that the draws of an attack do not depend on its share.
    rng = np.random.default_rng([Seeds.of(context.cell.seed).attack, zlib.crc32(b"labelled")])
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


def customer_predictions(context: CellContext) -> CustomerPredictions | None:
    """The customer's own predictions for the recorded examples of the evaluated split; None if it has no model."""
    split, tuned = context.cell.evaluate, context.tuned
    if tuned is None:
        return None
    rows = context.inputs.recorded[split]
    scores = tuned.alone(context.inputs.tokens[split].take(torch.from_numpy(rows)))
    return (
        None if scores is None else CustomerPredictions(split, rows, scores.argmax(1).cpu().numpy())
    )


def query_oracle(context: CellContext) -> Query:
    """The customer's side as a function from public tokens to what the vendor would receive.

    If training changes the customer's side and was run in this process, it is the trained function.
    """
    defense, backbone, cut, tuned = (
        context.planned.defense,
        context.backbone,
        context.cell.cut,
        context.tuned,
    )

    def answer(tokens: Tokens, rng: Generator) -> Ragged:
        sent = tuned.sends(tokens, rng) if tuned else None
        return simulate_vectors(defense, backbone, tokens, cut, rng) if sent is None else sent

    return answer


def with_shadows(
    planned: PlannedCell, read: Callable[[str], Record | None]
) -> tuple[PlannedCell, list[Leak]]:
    """Gives each attack with shadow models the measurements of them.

    Args:
        read: returns the record with a key, or None if there is none yet.

    Returns:
        The cell with these measurements and with the attacks that can start; leaks with a reason for the others.
    """
    ready, shadows, waiting = [], {}, list[Leak]()
    for pairing in planned.pairings:
        wanted = pairing.attack.shadowed if pairing.goals else None
        if wanted:
            measured = shadow_measurements(planned.cell, *wanted, read)
            if isinstance(measured, str):
                # Not final: another run trains the missing models.
                waiting += pairing.failed_leaks("failed", measured) + pairing.skipped_leaks()
                continue
            shadows[pairing.attack] = measured
        ready.append(pairing)
    return replace(planned, shadows=shadows, pairings=tuple(ready)), waiting


def shadow_measurements(
    target: Cell, number: int, measure: Attack, read: Callable[[str], Record | None]
) -> Shadows | str:
    """Measurements by an attack of each shadow model of a cell, or the reason why they are incomplete."""
    scores, members = [], []
    for shadow in range(number):
        name = f"shadow model {shadow + 1} of {number}"
        try:
            record = read(target.model_copy(update={"shadow": shadow}).key)
        except Corrupt as error:
            return f"the record of {name} is damaged ({error}); run again"
        if record is None:
            return f"{name} is not trained yet; run again"
        if record.status != "ok":
            return f"{name} ended {record.status}: {record.reason}"
        own = attack_id(spec_of(measure))
        leaks = [leak for leak in record.leaks if attack_id(leak.attack) == own]
        if not leaks or leaks[0].status != "ok":
            why = leaks[0].reason if leaks else "run again"
            return f"{name} was not measured by {measure}: {why}"
        scores.append(leaks[0].raw["millionths"])
        members.append(leaks[0].raw["member"])
    return Shadows(np.array(scores) / SCORE_UNIT, np.array(members, dtype=bool))
