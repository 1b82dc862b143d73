"""A head alone is trained on features that are computed once, with and without noise."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from cells import fine_tuned, make, session_of
from released import plan_of
from torch.nn.functional import cross_entropy

from leakboard.attacks.membership import Membership
from leakboard.bench.backbones.family import Family
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.exchange import model_release
from leakboard.bench.records.store import Store
from leakboard.bench.running.runner import Runner
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

HEAD = {"tune": "head", "epochs": 30, "batch_size": 48, "learning_rate": 0.1}


@pytest.mark.parametrize("defense", [DPSGD(epsilon=8), DPSGD(epsilon=None)])
def test_the_head_learns_and_nothing_else_is_trained_or_released(defense):
    session, inputs, tuned = fine_tuned(defense, train=HEAD)
    assert session.trained_parameters == (session.backbone.width + 1) * session.classes
    (message, *_) = session.wire.transcript().messages
    assert message.values.shape[1] == session.trained_parameters
    if defense.undefended:  # with its noise 48 examples teach nothing
        assert session.loss[-1] < session.loss[0]
    assert tuned.predict(inputs.tokens["dev"], "dev").shape == (len(inputs.tokens["dev"]), 2)


@pytest.fixture
def passes(monkeypatch) -> list[bool]:
    """For each pass through an encoder from now on, whether dropout was on."""
    found, whole = [], Family.pooled

    def counted(self, model, *rest):
        found.append(model.training)
        return whole(self, model, *rest)

    monkeypatch.setattr(Family, "pooled", counted)
    return found


def head_session():
    """A session whose public model has not computed anything yet."""
    session, _ = session_of(DPSGD(epsilon=8), train=HEAD)
    session.backbone = replace(session.backbone)
    return session


def test_features_are_those_of_the_model_without_dropout_and_computed_once_for_all_cells(passes):
    session = head_session()
    network = session.network()
    rows, labels = torch.tensor([3, 1, 40]), session.labels
    first = model_release.losses_of(session, network, session.train, labels)(rows)
    assert passes == [False]
    words = session.train.ids.with_values(network.embeddings(session.train.ids.values))
    expected = cross_entropy(network.eval()(words, session.train.types), labels, reduction="none")
    assert torch.allclose(first, expected[rows], atol=1e-5)
    another = session.network()
    again = model_release.losses_of(session, another, session.train, labels)(rows)
    assert torch.equal(first, again)
    assert len(passes) == 2  # the one of the expectation


@pytest.mark.parametrize("changed", ["adapters", "word embeddings", "precision"])
def test_what_is_trained_below_the_head_is_never_taken_from_the_public_model(passes, changed):
    session = head_session()
    tune = {"tune": "lora" if changed == "adapters" else "head"}
    session.settings = session.settings.model_copy(update=tune)
    network = session.network().eval()
    public = network.vectors(session.train)
    if changed == "word embeddings":
        network.embeddings.weight.requires_grad_().data *= -1
    for name, value in network.named_parameters():
        value.data += "lora_B" in name
    network.head.requires_grad_(False)
    if changed == "adapters":
        network.requires_grad_(False)  # as an attacker holds it
    with torch.autocast("cpu", torch.bfloat16, enabled=changed == "precision"):
        mine = network.vectors(session.train)
    assert len(passes) == 2
    assert (mine - public).abs().max() > 1e-4


def test_all_examples_may_be_one_batch():
    session, _, _ = fine_tuned(DPSGD(epsilon=3), train=HEAD)
    assert (session.claim.parameters["rate"], session.claim.parameters["steps"]) == (1.0, 30)


def test_how_many_gradients_are_held_at_once_changes_nothing(monkeypatch):
    vectors = []
    for size in (256, 7):
        monkeypatch.setattr("leakboard.bench.defending.private_training.AT_ONCE", size)
        _, _, tuned = fine_tuned(DPSGD(epsilon=3), train=HEAD | {"epochs": 3})
        vectors.append(torch.nn.utils.parameters_to_vector(tuned.network.trained()).detach())
    assert torch.allclose(*vectors, atol=1e-6)


def test_attacks_on_a_released_head_restore_it(tmp_path):
    plan = make(DPSGD(epsilon=None), train=HEAD, attacks=(Membership(),), plant=Plant(audit=20))
    (record,) = Runner(plan, Store(tmp_path)).run()
    assert record.status == "ok"
    assert {leak.status for leak in record.leaks} == {"ok"}


@pytest.mark.parametrize("defense", [NoDefense(), Frozen(), SAP(eta=75)])
def test_what_releases_no_model_has_no_head_alone(defense):
    (planned,) = make(defense, train=HEAD).cells
    assert "over an API that is the defense `frozen`" in planned.skip_reason


def test_a_language_model_has_no_head_alone():
    (planned,) = plan_of(DPSGD(), **HEAD).cells
    assert "a language model has no head of its own" in planned.skip_reason
