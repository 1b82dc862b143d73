"""Defenses of inputs and of labels compose: each part protects its stage, and claims, costs and attacks are of all."""

from __future__ import annotations

import pickle
import sys

import cloudpickle
import numpy as np
import pytest
import torch
from cells import fine_tuned, first_scene, leak_of, make, run

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.attacks.public_label import PublicLabel
from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import with_adapter_gradients, with_recomputed
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.exchange.session import Session
from leakboard.bench.methods import registry
from leakboard.bench.methods.method import Conditions
from leakboard.bench.running import isolation
from leakboard.bench.running.grants import granted_mechanism, vendor_network
from leakboard.bench.suites.suite import load_suite
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

NOISY = 180.0


def combined(name, **params):
    return registry.defense(name)(**params)


def suite_of(*entries):
    suite = {"name": "both", "task": "reviews", "attacks": ["prior"], "defenses": list(entries)}
    return [row.defense for row in load_suite(suite).defenses]


def values_of(session: Session, channel: Channel) -> np.ndarray:
    return session.wire.transcript().collect(channel, round=None).values


def test_order_of_the_parts_changes_neither_the_name_nor_the_key():
    one = {"combine": ["randomised-response", {"sap": {"eta": 75}}]}
    other = {"combine": [{"sap": {"eta": 75}}, {"randomised-response": {}}]}
    cells = [make(*suite_of(entry)).cells[0].cell for entry in (one, other)]
    assert cells[0].key == cells[1].key
    assert cells[0].defense.name == "sap+randomised-response"
    assert registry.defense("randomised-response+sap").display_name == "SAP + randomised response"
    told = registry.defense("sap+none").__doc__
    assert told == "Combine SAP and private head in one fine-tuning."


def test_lists_of_each_part_make_one_grid_and_the_name_alone_is_short_for_it():
    listed = {"combine": [{"sap": {"eta": [110, 75]}}, {"p3eft": {"weight": [0.1, 0.3]}}]}
    found = suite_of(listed, "sap+frozen")
    assert [(d.eta, d.weight) for d in found[:-1]] == [
        (110, 0.1),
        (110, 0.3),
        (75, 0.1),
        (75, 0.3),
    ]
    assert str(found[0].parts[1]) == "p3eft weight=0.1"
    assert found[-1] == combined("sap+frozen")


def test_a_combination_reaches_another_process_as_it_is():
    both = combined("sap+p3eft", eta=75, servers="per-vector")
    again = pickle.loads(pickle.dumps(both))
    assert again == both
    assert str(again) == str(both) == "sap+p3eft eta=75 servers=per-vector"


PART = '''
from typing import ClassVar
from leakboard.defenses.sap import SAP

class MySAP(SAP):
    """SAP of one's own."""
    name: ClassVar[str] = "my-sap"
'''


def test_a_part_from_a_file_is_combined_and_reaches_a_process_without_the_file(tmp_path):
    file = tmp_path / "my_sap.py"
    file.write_text(PART)
    entry = {"combine": [{str(file): {"eta": [50, 75]}}, "randomised-response"]}
    both = suite_of(entry)[1]
    assert str(both) == "my-sap+randomised-response eta=75"
    isolation.carry_files(both)
    packed = cloudpickle.dumps(both)
    file.unlink()
    sys.modules.pop("leakboard_file_my_sap")
    again = cloudpickle.loads(packed)
    assert str(again) == str(both)
    assert again.model_dump() == both.model_dump()


def test_an_attack_from_a_file_is_no_part(tmp_path):
    file = tmp_path / "reads.py"
    file.write_text(
        "from leakboard.attacks.prior import Prior\n\nclass Mine(Prior):\n    name = 'mine'\n"
    )
    with pytest.raises(LeakboardError, match="expected defenses, got an attack"):
        suite_of({"combine": ["sap", str(file)]})


def test_parameters_of_one_name_stand_for_one_part_each():
    found = combined("randomised-response+santext-plus", epsilon=3, randomised_response_epsilon=1)
    assert [part.epsilon for part in found.parts] == [3, 1]


@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        ({"combine": ["sap"]}, "at least two different defenses"),
        ({"combine": ["sap", "sap"]}, "at least two different defenses"),
        ({"combine": [["sap"], "frozen"]}, "at least two different defenses"),
        ({"combine": "sap"}, "at least two different defenses"),
        ({"combine": ["sap", "frozn"]}, "unknown defense 'frozn'. Did you mean 'frozen'"),
        ({"combine": ["frozen", {"sap": {"etta": 3}}]}, "unknown parameter 'etta'"),
        ({"combine": ["frozen", {"sap": {"eta": -3}}]}, "greater than 0"),
        ({"combine": ["frozen", {"sap": 3}]}, "for each part"),
        ("sap+frozn", "Did you mean 'frozen'"),
    ],
)
def test_a_combination_that_cannot_be_read_is_told_with_advice(entry, advice):
    with pytest.raises(LeakboardError, match=advice):
        suite_of(entry)


@pytest.mark.parametrize(
    ("name", "params", "reason"),
    [
        ("sap+santext-plus", {}, "both decide the inputs"),
        ("frozen+p3eft", {}, "both decide the training"),
        ("dpsgd+sap", {}, "dpsgd cannot be combined"),
        ("sap+frozen", {"bottom": "trainable"}, "gradient at the cut"),
        ("sap+p3eft", {"servers": "per-adapter"}, "use `servers: one`"),
        ("santext-plus+frozen", {}, "set cut: 0"),
    ],
)
def test_contradicting_parts_are_skipped_with_the_reason(name, params, reason):
    assert reason in combined(name, **params).skip(Conditions(cut=1))


def test_claims_of_both_parts_are_on_the_record():
    claim = combined("sap+randomised-response", eta=75, epsilon=1).claim()
    assert claim.parameters == {"eta": 75, "epsilon": 1}
    assert "dχ-privacy" in claim.guarantee
    assert "label differential privacy" in claim.guarantee
    assert claim.epsilon_of_members is None
    assert combined("sap+frozen", eta=75).claim() == SAP(eta=75).claim()


def test_the_class_declares_what_its_parts_send_together():
    both = registry.defense("sap+frozen")
    assert both.emits == both().sends == {Channel.REPRESENTATIONS, Channel.ACTIVATIONS}
    assert registry.defense("sap+randomised-response").emits == SAP.emits
    assert Channel.MODEL not in registry.defense("sap+none").emits


def test_the_twin_has_all_protections_off_and_sends_the_same_channels():
    both = combined("sap+randomised-response", eta=75)
    assert both.twins("classification") == (SAP(eta=None),)
    (twin,) = combined("sap+p3eft", eta=75).twins("classification")
    assert twin == combined("sap+none", eta=None)
    assert twin.undefended
    assert combined("sap+p3eft").sends <= twin.sends
    assert not twin.twins("classification")
    (plain,) = combined("p3eft+randomised-response").twins("classification")
    assert plain == NoDefense()


@pytest.mark.parametrize("cut", [0, 1])
def test_frozen_over_sap_sends_what_sap_sends_and_nothing_that_depends_on_labels(cut, monkeypatch):
    session, inputs, tuned = fine_tuned(combined("sap+frozen", eta=NOISY), cut=cut)
    alone, _, _ = fine_tuned(SAP(eta=NOISY), cut=cut)
    assert session.wire.transcript().channels == {Channel.REPRESENTATIONS, Channel.ACTIVATIONS}
    sent, theirs = (values_of(s, Channel.REPRESENTATIONS) for s in (session, alone))
    assert np.array_equal(sent, theirs)
    before = session.wire.transcript().messages
    monkeypatch.setattr(Session, "truth", lambda self, rows: 1 - self.labels[rows])
    flipped, _, _ = fine_tuned(combined("sap+frozen", eta=NOISY), cut=cut)
    after = flipped.wire.transcript().messages
    assert all(np.array_equal(a.values, b.values) for a, b in zip(before, after, strict=True))
    tuned.predict(inputs.tokens["dev"], "dev")
    again = session.wire.transcript().collect(Channel.REPRESENTATIONS, "dev").values
    clean = session.backbone.embeddings[inputs.tokens["dev"].ids.values]
    assert cut or not np.array_equal(again, clean.numpy())  # questions are noisy, too


def test_gradients_of_sap_carry_the_randomised_labels():
    both = combined("sap+randomised-response", eta=None, epsilon=0.5)
    session, inputs, _ = fine_tuned(both, limit=48)
    truth = torch.from_numpy(inputs.task.splits["train"].labels)
    kept = (session.labels == truth).float().mean()
    assert 0.3 < kept < 0.95
    sent = session.wire.transcript().collect(Channel.LOGIT_GRADIENTS)
    assert np.array_equal(sent.values.argmin(1), session.labels[sent.rows])


@pytest.mark.parametrize("cut", [0, 1])
def test_split_gradients_over_noisy_inputs_train_as_unsplit_ones_do(cut):
    train = {"learning_rate": 2e-2, "epochs": 2}
    one, _, _ = fine_tuned(combined("sap+p3eft", eta=None, weight=0, sigma=0), cut=cut, train=train)
    other, _, _ = fine_tuned(combined("sap+none", eta=None), cut=cut, train=train)
    sent = [values_of(s, Channel.REPRESENTATIONS) for s in (one, other)]
    assert np.array_equal(*sent)
    assert len(one.wire.transcript().collect(Channel.REPRESENTATIONS).rows) == len(one.train)
    assert one.loss == pytest.approx(other.loss, rel=0.3)  # the second adapter starts elsewhere


@pytest.mark.parametrize("cut", [0, 1])
def test_a_server_recomputes_activations_from_the_vectors_that_it_keeps(cut):
    session, _, _ = fine_tuned(combined("sap+none", eta=NOISY), cut=cut)
    seen = session.wire.transcript()
    network = vendor_network(session.backbone, session.settings, 2, cut)
    more = with_recomputed(seen, network)
    untrained = more.collect(Channel.RECOMPUTED, moment=0)
    sent = seen.collect(Channel.REPRESENTATIONS)
    top = session.network(adapted=False, cut=cut).eval()
    vectors = session.train.ids.with_values(torch.from_numpy(sent.values.copy()))
    with torch.no_grad():
        expected = top.features(vectors, session.train.types)
    assert np.allclose(untrained.values, expected.numpy(), atol=1e-4)
    assert max(more.moments(Channel.RECOMPUTED)) > 0
    own = with_adapter_gradients(seen, network)
    assert Channel.ADAPTER_GRADIENTS in own.channels


def test_attacks_on_texts_know_the_noise_and_attacks_on_labels_the_whole():
    both = combined("sap+randomised-response", eta=75)
    assert granted_mechanism(NearestNeighbour(), both) == SAP(eta=75)
    assert granted_mechanism(PublicLabel(), both) is both
    assert granted_mechanism(NearestNeighbour(), SAP()) == SAP()


def test_every_goal_is_attacked_beside_the_twin(tmp_path):
    attacks = (NearestNeighbour(), LogitGradient(), Spectral())
    both = combined("sap+frozen", eta=NOISY)
    record, twin = run(tmp_path, both, attacks=attacks, twins=True)[:2]
    assert {leak.goal for leak in record.leaks if leak.status == "ok"} == {
        Goal.INVERSION,
        Goal.LABEL,
    }
    assert leak_of(record, "eia-nn").success.value < leak_of(twin, "eia-nn").success.value == 1.0
    floors = [leak.floor for leak in record.leaks if leak.channel == Channel.ACTIVATIONS]
    assert floors
    assert all(floor is not None for floor in floors)
    assert record.claim == both.claim()
    assert record.cost.bytes_up > 0


def test_a_head_alone_is_tuned_as_cheaply_over_noisy_inputs():
    scene = first_scene(combined("sap+frozen"))
    tried = scene.planned.defense.tried(scene.cell.train, 48, 2)
    assert {each["epochs"] for each in tried} == {10, 30}
    assert all("tune" not in each for each in tried)
    assert combined("sap+frozen").head_only
    assert not combined("sap+none").head_only
