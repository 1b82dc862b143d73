"""Models that are handed out, by each defense that releases one."""

from __future__ import annotations

import pytest
import torch
from cells import load_tiny
from released import FORM, plan_of, run

from bench.backbones.language import LanguageModel
from bench.contracts.settings import Plant, TrainSettings
from bench.exchange.released import losses, restored
from bench.records.store import from_text, to_text
from defenses.crt import CRT
from defenses.dpsgd import DPSGD
from defenses.jft import JFT
from defenses.none import NoDefense
from defenses.redacted import Redacted


@pytest.mark.parametrize("tune", ["lora", "full"])
def test_what_was_released_makes_the_same_model_again(tune):
    backbone, settings = load_tiny("tiny-gpt2"), TrainSettings(tune=tune)
    torch.manual_seed(1)
    network = LanguageModel(backbone, settings)
    for p in network.trained():
        p.data += 0.1 * torch.randn_like(p)
    vector = torch.nn.utils.parameters_to_vector(network.trained()).detach()
    again = restored(LanguageModel(backbone, settings), vector)
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
    from defenses.sap import SAP

    record = run(plan_of(SAP()))
    assert record.status == "skipped"
    assert "trains for classification" in record.reason
