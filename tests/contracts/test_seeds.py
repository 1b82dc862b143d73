"""One seed per axis: what it changes, what it leaves alone, and that a result comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from cells import run, session_of
from paths import ROOT

from leakboard.bench.contracts.cell import Seeds, fingerprint
from leakboard.bench.contracts.threat import Channel
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP
from leakboard.defenses.sap_cti import SAPCTI

AXES = [field.name for field in fields(Seeds)]


def trace(defense, seeds, monkeypatch):
    """What each axis decides: initial weights, order of batches, noise."""
    session, _ = session_of(defense, seeds=seeds)
    build, initial = type(session).network, {}

    def network(self, *args, **kwargs):
        made = build(self, *args, **kwargs)
        initial.update(
            {k: p.detach().clone() for k, p in made.named_parameters() if p.requires_grad}
        )
        return made

    with monkeypatch.context() as patch:
        patch.setattr(type(session), "network", network)
        defense.fine_tune(session)
    seen = session.wire.transcript()
    channel = Channel.LOGIT_GRADIENTS if Channel.LOGITS in defense.emits else Channel.GRADIENTS
    order = [(m.round, m.rows.tolist()) for m in seen.messages if m.channel == channel]
    sent = seen.collect(Channel.REPRESENTATIONS).values if seen.splits("representations") else None
    return initial, order, sent


def test_changing_the_seed_of_one_axis_changes_that_axis_only(monkeypatch):
    base = Seeds.of(0)
    defense = SAP(eta=180)
    initial, order, sent = trace(defense, base, monkeypatch)
    changes = {"initialisation": 0, "order": 1, "mechanism": 2, "data": None, "attack": None} | {
        "planting": None
    }
    for axis, changed in changes.items():
        other = trace(defense, replace(base, **{axis: 12345}), monkeypatch)
        same = [
            all(torch.equal(v, initial[k]) for k, v in other[0].items()),
            other[1] == order,
            np.array_equal(other[2], sent),
        ]
        assert same == [i != changed for i in range(3)], axis


def test_two_defenses_see_the_same_batches_and_start_from_the_same_weights(monkeypatch):
    plain, *order = trace(NoDefense(), Seeds.of(0), monkeypatch)[:2]
    for defense in (SAP(eta=50), SAP(eta=50, bottom="trainable"), SAPCTI(eta=75)):
        initial, *other = trace(defense, Seeds.of(0), monkeypatch)[:2]
        assert other == order
        assert initial.keys() == plain.keys()
        assert all(torch.equal(v, initial[k]) for k, v in plain.items())


def test_head_starts_the_same_with_and_without_adapters():
    session, _ = session_of(NoDefense())
    heads = [session.network(adapted=a).head.weight for a in (True, False)]
    assert torch.equal(*heads)


def test_seeds_differ_between_axes_and_cells_and_never_change():
    of = [Seeds.of(seed, secret="the customer's") for seed in range(20)]
    every = [getattr(seeds, axis) for seeds in of for axis in AXES]
    assert len(set(every)) == len(every)
    # Written down once: another value here would silently make old records irreproducible.
    assert Seeds.of(0) == Seeds(*SEEDS_OF_0)
    assert Seeds.of(0, secret="the customer's") == replace(Seeds(*SEEDS_OF_0), **HIDDEN)


def test_a_secret_hides_what_the_customer_keeps_and_changes_nothing_else():
    open_, mine, other = (Seeds.of(3, secret=secret) for secret in ("", "mine", "another"))
    assert [axis for axis in AXES if getattr(mine, axis) != getattr(open_, axis)] == list(HIDDEN)
    for axis in HIDDEN:
        values = {getattr(seeds, axis) for seeds in (open_, mine, other)}
        assert len(values) == 3
        # Too many to try them all.
        assert getattr(mine, axis).bit_length() > 100
    # The coins of shadow models are their own, and the digits of canaries those of the target.
    shadow = Seeds.of(3, 0, "mine")
    assert (shadow.planting, shadow.data) == (mine.planting, mine.data)
    assert shadow.mechanism != mine.mechanism


def test_a_fingerprint_tells_secrets_apart_and_holds_nothing_of_them():
    assert fingerprint("") is None
    assert fingerprint("the customer's") == "c18d41cedc1d0288"
    assert fingerprint("the customers") != fingerprint("the customer's")


SEEDS_OF_0 = (890424286, 2715681835, 1428798525, 890424286, 3581924351, 567148624)
HIDDEN = {
    "planting": 83354377233129710573498229175311861087,
    "mechanism": 182210094391166566604530310696580787727,
}

PROGRAM = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, {builders!r})
from cells import run
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP
records = run(Path(sys.argv[1]), SAP(eta=180, bottom="trainable"), NoDefense(), limit=32)
print(json.dumps([r.outcome() for r in records], sort_keys=True))
"""


@pytest.mark.slow
def test_results_are_equal_in_fresh_processes(tmp_path):
    program = PROGRAM.format(builders=str(ROOT / "tests" / "builders"))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / seed)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    outputs = [process.communicate()[0] for process in running]
    here = run(tmp_path / "here", SAP(eta=180, bottom="trainable"), NoDefense(), limit=32)
    expected = json.loads(json.dumps([r.outcome() for r in here]))
    assert [json.loads(output) for output in outputs] == [expected, expected]
    assert all(cell["status"] == "ok" and cell["leaks"] for cell in expected)
