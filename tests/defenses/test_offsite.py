"""Offsite-tuning: what the vendor hands out, what comes back, and what each of the two can do with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned, leak_of, load_tiny, run, session_of
from pydantic import ValidationError

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.keep_emulator import KeepEmulator
from leakboard.attacks.prior import Prior
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange import model_release
from leakboard.bench.methods import Conditions
from leakboard.bench.methods.attack import Silent
from leakboard.bench.methods.knowledge import CustomerPredictions, Knowledge
from leakboard.bench.scoring.certificates import strengths
from leakboard.bench.scoring.rescoring import rescore
from leakboard.defenses.offsite import OffsiteTuning, emulated, ends

DEEP = {"model": "tiny-deep-bert"}


@pytest.fixture
def six_blocks():
    return load_tiny("tiny-deep-bert")


def without_wire(session, defense, backbone):
    """A network with LoRA at both ends, tuned as the defense tunes it."""
    network = session.partly(backbone, ends(backbone.blocks, defense.pad))
    model_release.train(session, network, session.train, release=False)
    return network.eval()


def test_with_all_blocks_handed_out_the_plug_in_is_full_split_fine_tuning_bit_for_bit():
    defense = OffsiteTuning(emulator=None)
    _session, inputs, tuned = fine_tuned(defense, **DEEP)
    other, _ = session_of(defense, **DEEP)
    full = model_release.Released(without_wire(other, defense, other.backbone))
    dev = inputs.tokens["dev"]
    assert torch.equal(tuned.predict(dev, "dev"), full.predict(dev, "dev"))
    assert torch.equal(tuned.alone(dev), tuned.predict(dev, "dev"))


def test_the_customer_tunes_the_ends_on_the_emulator_and_the_vendor_gets_them(six_blocks):
    defense = OffsiteTuning(emulator=2, steps=0)
    _session, inputs, tuned = fine_tuned(defense, **DEEP, train={"learning_rate": 0.01})
    dev = inputs.tokens["dev"]
    own, plugged = tuned.alone(dev), tuned.predict(dev, "dev")
    assert not torch.allclose(own, plugged, atol=1e-3)
    small = emulated(six_blocks, 1, [1, 4])
    other, _ = session_of(defense, **DEEP, train={"learning_rate": 0.01})
    network = without_wire(other, defense, small)
    assert torch.equal(model_release.Released(network).predict(dev, "dev"), own)
    vendor = other.partly(six_blocks, [0, 5])
    with torch.no_grad():
        for mine, theirs in zip(vendor.trained(), network.trained(), strict=True):
            mine.copy_(theirs)
    assert torch.equal(model_release.Released(vendor).predict(dev, "dev"), plugged)


@pytest.mark.parametrize(
    ("emulator", "kept"),
    [(1, [3]), (2, [1, 4]), (3, [1, 3, 4]), (4, [1, 2, 3, 4]), (None, [1, 2, 3, 4])],
)
def test_the_emulators_blocks_are_spread_evenly_and_one_stands_in_the_middle(emulator, kept):
    assert OffsiteTuning(emulator=emulator).positions(6) == kept


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"emulator": 5}, "emulator: 5 blocks asked for.*at most 4"),
        ({"pad": 3}, "pad: 3 blocks at either end.*at most 2"),
        ({"pad": 2, "emulator": 3}, "emulator: 3 .*at most 2"),
    ],
)
def test_more_blocks_than_there_are_are_refused_with_the_bound(given, told):
    with pytest.raises(LeakboardError, match=told):
        OffsiteTuning(**given).positions(6)


@pytest.mark.parametrize("given", [{"emulator": 0}, {"pad": 0}, {"steps": -1}])
def test_bad_values_are_refused_by_name(given):
    with pytest.raises(ValidationError, match=next(iter(given))):
        OffsiteTuning(**given)


def test_distillation_brings_the_emulator_closer_to_the_blocks_it_stands_for(six_blocks):
    session, _ = session_of(OffsiteTuning(), **DEEP)
    before = emulated(six_blocks, 1, [1, 4])
    after = emulated(six_blocks, 1, [1, 4])
    OffsiteTuning(steps=40, distil_rate=1e-3)._distil(session, after, 2)

    def far(small):
        tokens = session.train.take(torch.arange(20))
        x, ragged = OffsiteTuning()._entered(six_blocks, tokens)
        mask, through = ragged.mask(), six_blocks.family.through
        x = through(six_blocks.model, x, mask, 0, 1)
        aim = through(six_blocks.model, x, mask, 1, 5)[mask]
        return float((through(small.model, x, mask, 1, 3)[mask] - aim).square().mean())

    assert far(after) < 0.8 * far(before)
    for name, value in after.model.named_parameters():
        same = torch.equal(value, dict(before.model.named_parameters())[name])
        assert same == (".1." not in name and ".2." not in name), (
            name
        )  # the ends are the model's own


def test_without_public_text_it_says_what_to_do():
    session, _ = session_of(OffsiteTuning(), **DEEP)
    session.public = None
    with pytest.raises(LeakboardError, match="steps: 0 does without"):
        OffsiteTuning().fine_tune(session)


def test_no_text_crosses_in_training_and_the_adapter_comes_back_once():
    session, _inputs, _ = fine_tuned(OffsiteTuning(steps=0), **DEEP)
    messages = session.wire.transcript().messages
    (returned,) = messages
    assert (returned.channel, returned.sender) == (Channel.EMULATOR, "customer")
    assert session.wire.bytes_up == 4 * returned.values.size == 4 * session.trained_parameters
    handed = emulated(session.backbone, 1, [1, 4]).model.parameters()
    assert session.wire.bytes_down == 4 * sum(p.numel() for p in handed)


def test_a_distilled_emulator_stays_as_it_is_while_the_customer_tunes_the_ends():
    session, _, tuned = fine_tuned(OffsiteTuning(steps=2), **DEEP)
    assert all(
        "lora" in name or "head" in name
        for name, p in tuned.customer.named_parameters()
        if p.requires_grad
    )
    (returned,) = session.wire.transcript().messages
    assert returned.values.size == session.trained_parameters


def test_the_record_says_who_is_protected_from_whom(tmp_path):
    attacks = [KeepEmulator(), NearestNeighbour(), Prior()]
    fields = {"attacks": attacks, "limit": 60, **DEEP}
    records = run(tmp_path, OffsiteTuning(steps=0), OffsiteTuning(emulator=None), **fields)
    for record in records:
        assert record.status == "ok", record.reason
        own = leak_of(record, "keep-emulator", "dev", "model")
        assert own.channel == Channel.EMULATOR
        assert leak_of(record, "eia-nn", "dev").success.value == 1.0
        assert rescore(record).mismatches == []
    whole = leak_of(records[1], "keep-emulator", "dev", "model")
    assert whole.success.value == records[1].utility.value
    found = strengths(records)
    index = [leak.attack.name for leak in records[0].leaks].index("keep-emulator")
    assert (records[0].key, index) in found  # certified on what hands out all blocks


def test_a_model_with_too_few_blocks_ends_in_a_record_with_the_bound(tmp_path):
    (record,) = run(tmp_path, OffsiteTuning(), attacks=[KeepEmulator()])  # tiny-bert has two
    assert record.status == "failed"
    assert "pad: 1 blocks at either end leave none" in record.reason


def test_a_cut_is_refused():
    assert "cut: 0" in OffsiteTuning().skip(Conditions(cut=1))


def test_who_holds_nothing_says_so_and_the_guess_is_what_is_held():
    rng = np.random.default_rng(0)
    with pytest.raises(Silent, match="holds nothing"):
        KeepEmulator().guess(None, Knowledge(2, "cpu"), rng)
    held = CustomerPredictions("dev", np.array([3, 5]), np.array([1, 0]))
    (guess,) = KeepEmulator().guess(None, Knowledge(2, "cpu", held=held), rng)
    assert (guess.goal, guess.channel) == ("model", "emulator")
    assert (guess.split, guess.rows.tolist(), guess.values.tolist()) == ("dev", [3, 5], [1, 0])
