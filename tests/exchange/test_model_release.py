"""Models that are handed out, by each defense that releases one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny, session_of
from released import FORM, plan_of, run

from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import Plant, TrainSettings
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange import model_release as module
from leakboard.bench.exchange.model_release import fit, losses, restore
from leakboard.bench.records.store import from_text, to_text
from leakboard.defenses.crt import CRT
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.jft import JFT
from leakboard.defenses.none import NoDefense
from leakboard.defenses.redacted import Redacted


@pytest.mark.parametrize("tune", ["lora", "full"])
def test_what_was_released_makes_the_same_model_again(tune):
    backbone, settings = load_tiny("tiny-gpt2"), TrainSettings(tune=tune)
    torch.manual_seed(1)
    network = LanguageModel(backbone, settings)
    for p in network.trained():
        p.data += 0.1 * torch.randn_like(p)
    vector = torch.nn.utils.parameters_to_vector(network.trained()).detach()
    again = restore(LanguageModel(backbone, settings), vector)
    tokens = backbone.encode(["call parcel at 3"], None, 16)
    labels = torch.zeros(1, dtype=torch.long)
    assert torch.equal(losses(network.eval(), tokens, labels), losses(again, tokens, labels))


RELEASES = (
    NoDefense(),
    DPSGD(epsilon=3),
    JFT(detector="exact", epsilon=8),
    Redacted(detector="exact"),
    CRT(detector="exact", epsilon=8),
    JFT(detector="exact", epsilon=8, phase1="manual", checked=0.5),
    JFT(detector="exact", epsilon=8, phase1="light-noise"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defense", "tune"),
    # Plain, with noise from the start, with noise in a second phase; the others differ in texts.
    [(one, "lora") for one in RELEASES] + [(one, "full") for one in RELEASES[:3]],
    ids=str,
)
def test_each_trains_a_language_model_and_its_record_survives_the_disk(defense, tune, tmp_path):
    plant = Plant(canaries=FORM, copies=(2,), unseen=2)
    record = run(plan_of(defense, plant=plant, tune=tune))
    assert (record.status, record.reason) == ("ok", "")
    assert record.cell.train.tune == tune
    assert record.utility_metric == "next-token accuracy"
    claims = {"dpsgd", "crt", "jft"}
    assert (record.claim is not None) == (defense.name in claims)
    path = tmp_path / f"{record.key}.json"
    path.write_text(to_text(record))
    assert from_text(path) == record


def test_defense_of_an_api_says_that_it_cannot_train_a_language_model():
    from leakboard.defenses.sap_cti import SAPCTI

    record = run(plan_of(SAPCTI()))
    assert record.status == "skipped"
    assert "trains for classification" in record.reason


def test_each_epoch_hands_out_the_model_as_it_then_is():
    session, _ = session_of(DPSGD(epsilon=None), limit=16, train={"epochs": 3, "batch_size": 8})
    network, after = session.trainee(), []

    def step(rows):
        after.append(torch.nn.utils.parameters_to_vector(network.trained()).detach().numpy())
        for parameter in network.trained():
            parameter.grad = torch.ones_like(parameter)
        return 1.0

    fit(session, network, step, session.train.lengths)
    sent = [m for m in session.wire.transcript().messages if m.channel == Channel.MODEL]
    assert [(m.round, m.step, m.recipient) for m in sent] == [
        (0, 2, "public"),
        (1, 4, "public"),
        (2, 6, "public"),
    ]
    # What the first step of an epoch starts from is what the epoch before handed out.
    for message, start in zip(sent, after[2::2], strict=False):
        assert np.array_equal(message.values[0], start)
    last = torch.nn.utils.parameters_to_vector(network.trained()).detach().numpy()
    assert np.array_equal(sent[-1].values[0], last)


def test_chosen_rows_alone_are_trained_on_with_their_own_labels(monkeypatch):
    session, _ = session_of(DPSGD(epsilon=None), limit=24, train={"epochs": 1, "batch_size": 4})
    rows = torch.tensor([2, 3, 7, 11, 12, 19, 20, 23])
    session.labels = torch.arange(24) % 2 * (torch.arange(24) > 6)
    places = {tuple(session.train.take(row[None]).ids.values.tolist()): int(row) for row in rows}
    seen, original = [], module.losses

    def noted(network, tokens, labels):
        each = torch.split(tokens.ids.values, tokens.ids.lengths.tolist())
        for ids, label in zip(each, labels, strict=True):
            seen.append((places[tuple(ids.tolist())], int(label)))
        return original(network, tokens, labels)

    monkeypatch.setattr(module, "losses", noted)
    module.train(session, session.trainee(), session.train, rows, release=False)
    assert sorted(seen) == [(int(row), int(session.labels[row])) for row in rows]
    assert not session.wire.transcript().messages
