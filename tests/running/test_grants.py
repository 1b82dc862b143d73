"""What attackers are granted: simulations of the mechanism, public texts, labelled examples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cells import NOISY, first_scene, load_tiny, make, run, session_of
from numbered_texts import numbered
from released import plan_of
from scipy.stats import kstest

from leakboard.attacks.aia_finetune import FineTune
from leakboard.attacks.aia_mlp import MeanMLP
from leakboard.attacks.eia_learned import Learned
from leakboard.attacks.eia_map import ContextualDenoiser
from leakboard.attacks.lira import Lira
from leakboard.attacks.membership import Membership
from leakboard.attacks.rmia import Rmia
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Guess
from leakboard.bench.running.cell_context import context_of
from leakboard.bench.running.grants import knowledge_for
from leakboard.bench.scoring.checks import flags
from leakboard.bench.scoring.guesses import Truth, score
from leakboard.bench.suites.suite import load_suite
from leakboard.bench.tasks.reviews import reviews
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.redacted import Redacted
from leakboard.defenses.sap import SAP
from leakboard.defenses.sap_cti import SAPCTI

SENT = Channel.REPRESENTATIONS
MAP = ContextualDenoiser(sentences=48)
WEIGHTS, QUERY = Learned(sentences=48), Learned(access="query", sentences=48)


def sent_and_simulated(defense, cut=0, limit=64):
    session, inputs = session_of(defense, cut=cut, limit=limit)
    defense.fine_tune(session)
    tokens = inputs.tokens["train"]
    sent = session.wire.transcript().collect(SENT).values
    simulated = defense.simulate(session.backbone, tokens, cut, np.random.default_rng(1))
    assert simulated.lengths.tolist() == tokens.lengths.tolist()
    return session.backbone, tokens, sent, simulated.values.numpy()


@pytest.mark.parametrize("cut", [0, 1])
def test_simulation_without_noise_is_what_the_wire_carries(cut):
    _, _, sent, simulated = sent_and_simulated(SAP(eta=None), cut)
    np.testing.assert_allclose(simulated, sent, atol=1e-5)


def test_simulation_changes_as_many_tokens_as_the_wire_with_noise_of_its_own():
    base, tokens, sent, simulated = sent_and_simulated(SAP(eta=NOISY), limit=400)
    words = [base.neighbours.nearest(v) for v in (sent, simulated)]
    for found, vectors in zip(words, (sent, simulated), strict=True):
        assert (vectors == base.embeddings.numpy()[found]).all()
    truth, special = tokens.ids.values.numpy(), tokens.special.numpy()
    kept = [(w == truth)[~special].mean() for w in words]
    assert kept[0] == pytest.approx(kept[1], abs=0.03)
    assert (words[1] == truth)[special].all()
    assert (words[0] != words[1])[~special].mean() > 0.2


def test_simulated_noise_at_depth_follows_its_law():
    base, tokens, _, simulated = sent_and_simulated(SAP(eta=40.0), cut=1)
    words = tokens.ids.with_values(base.embeddings[tokens.ids.values])
    noise = simulated - base.bottom(words, tokens.types, 1).values.numpy()
    radius = np.linalg.norm(noise, axis=1)
    assert kstest(radius, "gamma", args=(base.width, 0, 1 / 40.0)).pvalue > 1e-3


def test_which_tokens_contribute_is_no_part_of_the_simulation():
    defense = SAPCTI(eta=20, share=0.2)
    base, tokens, sent, simulated = sent_and_simulated(defense)
    session, _ = session_of(defense, limit=64)
    clear = defense.in_clear(session)[tokens.ids.values] & ~tokens.special
    truth = tokens.ids.values
    assert (base.neighbours.nearest(sent[clear]) == truth[clear].numpy()).all()
    assert (base.neighbours.nearest(simulated[clear]) == truth[clear].numpy()).mean() < 0.1


@pytest.mark.parametrize("defense", [NoDefense(), Frozen(), Blackout()])
def test_a_defense_without_a_mechanism_simulates_nothing(defense):
    base = load_tiny("tiny-bert")
    tokens = base.encode(["not good"], None, 16)
    assert defense.simulate(base, tokens, 0, np.random.default_rng(0)) is None


def test_the_attacker_by_queries_is_given_no_weights_and_no_mechanism():
    scene = first_scene(SAP(eta=None), attacks=[QUERY, WEIGHTS, MAP])
    known = [knowledge_for(pairing, scene) for pairing in scene.planned.pairings]
    assert known[0].base is None
    assert known[0].mechanism is None
    assert known[0].query is not None
    for knowledge in known[1:]:
        assert knowledge.base is scene.backbone
        assert knowledge.mechanism is not None
        assert knowledge.query is None


def other_text(tmp_path, texts=()):
    """A folder with a `sst2` whose public text is `texts`, before some sentences of its own."""
    folder = tmp_path / "sst2"
    folder.mkdir(parents=True)
    for split, n in (("train", 20), ("dev", 20), ("auxiliary", 60)):
        lines = [f"{split} {i} the film is not good\t{i % 2}" for i in range(n)]
        lines += [f"{text.upper()}\t0" for text in texts] if split == "auxiliary" else []
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    return tmp_path


def test_public_text_of_another_task_replaces_the_own_one(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAKBOARD_DATA", str(other_text(tmp_path / "data")))
    own, other = (ContextualDenoiser(auxiliary=name, sentences=40) for name in ("own", "sst2"))
    plan = make(SAP(eta=None), attacks=[own, other])
    scene = context_of(plan, plan.cells[0])
    near, far = (knowledge_for(p, scene).auxiliary for p in scene.planned.pairings)
    # A limit is the customer's.
    assert (len(near.tokens), len(far.tokens)) == (2000, 60)
    assert near.tokens.ids.values.tolist() != far.tokens.ids.values.tolist()
    sst2 = scene.backbone.encode(plan.public["sst2"].split("auxiliary").texts, None, 128)
    assert set(far.tokens.ids.values.tolist()) <= set(sst2.ids.values.tolist())
    # Its labels would be taken for labels of this task.
    assert len(far.labels) == 0
    assert far.attributes == {}
    (record,) = run(tmp_path / "results", SAP(eta=None), attacks=[own, other])
    told = {leak.attack.params["auxiliary"]: leak.success.value for leak in record.leaks}
    assert told.keys() == {"own", "sst2"}
    assert min(told.values()) > 0.99


def test_a_text_of_the_customers_is_not_public_because_another_task_has_it(tmp_path, monkeypatch):
    private = reviews().split("train").texts[:9]
    monkeypatch.setenv("LEAKBOARD_DATA", str(other_text(tmp_path, private)))
    plan = make(SAP(), attacks=[Learned(auxiliary="sst2")], limit=100)
    inputs = context_of(plan, plan.cells[0]).inputs
    assert len(plan.public["sst2"].split("auxiliary")) == 69
    assert len(inputs.public["sst2"].tokens) == 60


@pytest.mark.parametrize("attack", ["eia-map", "eia-learned"])
def test_an_unknown_task_as_public_text_is_told_with_its_line_and_the_nearest_name(
    tmp_path, attack
):
    file = tmp_path / "s.yaml"
    text = f"name: s\ntask: reviews\ndefenses: none\nattacks: [{attack}: {{auxiliary: [own, sst]}}]"
    file.write_text(text)
    with pytest.raises(LeakboardError, match=r"s\.yaml:4: .*unknown task 'sst'\. .*'sst2'"):
        load_suite(str(file))


def granted(attack, defense=None, **fields):
    scene = first_scene(defense or SAP(), attacks=[attack], **fields)
    return knowledge_for(scene.planned.pairings[0], scene).labelled, scene.inputs


def test_all_defenses_and_attacks_get_the_same_rows():
    first, inputs = granted(MeanMLP(labelled=0.25), SAP(eta=50))
    for attack, defense in ((MeanMLP, NoDefense()), (FineTune, SAP(eta=50))):
        other, _ = granted(attack(labelled=0.25), defense)
        assert other.rows.tolist() == first.rows.tolist()
    assert len(first.rows) == 12
    assert first.values == {"gender": 2, "age_band": 3}
    for name, values in inputs.task.splits["train"].attributes.items():
        assert first.attributes[name].tolist() == values[first.rows].tolist()


def test_rows_are_recorded_ones_depend_on_the_seed_and_grow_with_the_share():
    draws = {}
    for share in (0.01, 0.1, 0.5):
        draws[share], inputs = granted(MeanMLP(labelled=share), record={"examples": 20})
        assert set(draws[share].rows) < set(inputs.recorded["train"])
    assert [len(d.rows) for d in draws.values()] == [1, 2, 10]
    assert set(draws[0.01].rows) < set(draws[0.1].rows) < set(draws[0.5].rows)
    other, _ = granted(MeanMLP(labelled=0.5), seeds=(1,), record={"examples": 20})
    assert other.rows.tolist() != draws[0.5].rows.tolist()


def test_attack_that_declares_no_labelled_share_is_told_nothing():
    scene = first_scene(SAP())
    for pairing in scene.planned.pairings:
        assert knowledge_for(pairing, scene).labelled is None


def test_a_suite_sweeps_the_labelled_share(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "name: x\ntask: reviews\ndefenses: none\nattacks: [aia-mlp: {labelled: [0.01, 0.5]}]\n"
    )
    assert load_suite(str(file)).attacks == (MeanMLP(labelled=0.01), MeanMLP(labelled=0.5))


def test_echo_of_what_was_granted_gets_no_credit():
    labelled, inputs = granted(MeanMLP(labelled=0.5))
    truth = Truth(inputs.tokens, inputs.task.splits, inputs.recorded)
    rows = inputs.recorded["train"]
    true = inputs.task.splits["train"].attributes["gender"][rows]
    echo = np.where(np.isin(rows, labelled.rows), true, 1 - true)
    guess = Guess(Goal.ATTRIBUTE, None, "train", rows, echo, attribute="gender")
    assert score(guess, truth)["success"].value == 0.5
    fields = score(guess, truth, labelled.rows)
    rest = true[~np.isin(rows, labelled.rows)]
    assert fields["success"].value == 0
    assert fields["success"].chance == np.bincount(rest).max() / len(rest)
    assert fields["units"] == fields["success"].n == len(rest) == 24
    assert fields["raw"]["truth"] == rest.tolist()


def test_a_share_without_some_value_is_flagged_and_attacked_all_the_same(tmp_path):
    attacks = [cls(labelled=share) for cls in (MeanMLP, FineTune) for share in (0.02, 0.5)]
    (record,) = run(tmp_path, NoDefense(), attacks=attacks)
    raised = flags([record])
    for i, leak in enumerate(record.leaks):
        share = leak.attack.params["labelled"]
        assert leak.status == "ok"
        assert sum(leak.told) == {0.02: 1, 0.5: 24}[share]
        assert len(leak.told) == {"gender": 2, "age_band": 3}[leak.attribute]
        assert ("unseen-class" in raised.get((record.key, i), ())) == (share == 0.02)


class TestMaskedCandidates:
    PLANT = Plant(audit=20)

    def told(self, attack, defense, task=None):
        plan = plan_of(defense, task=task or numbered(0, 20), plant=self.PLANT, attacks=(attack,))
        scene = context_of(plan, plan.cells[0])
        return knowledge_for(scene.planned.pairings[0], scene), scene

    def test_go_to_who_knows_the_mechanism_and_to_nobody_else(self):
        told, scene = self.told(Rmia(), Redacted())
        for known, split in (
            (told.candidates, scene.inputs.planted.audited),
            (told.auxiliary, scene.inputs.task.splits["auxiliary"]),
        ):
            texts = Redacted().as_trained(scene.backbone, split).texts
            expected = scene.backbone.encode(texts, None, 128, opened=True)
            assert known.masked.ids.values.tolist() == expected.ids.values.tolist()
            assert known.tokens.lengths.sum() > known.masked.lengths.sum()
        told, scene = self.told(Rmia(candidates="raw"), Redacted())
        assert told.candidates.masked is told.auxiliary.masked is told.mechanism is None
        assert told.candidates is scene.inputs.candidates

    @pytest.mark.parametrize("defense", [NoDefense(), DPSGD()])
    def test_are_not_there_where_training_sees_texts_as_they_are(self, defense):
        told, _ = self.told(Membership(), defense)
        assert told.mechanism is not None
        assert told.candidates.masked is None

    def test_are_made_once_for_a_defense_and_anew_for_another(self):
        _, scene = self.told(Membership(), Redacted())
        planned = scene.planned
        once, twice = (knowledge_for(planned.pairings[0], scene) for _ in range(2))
        assert once.candidates.masked is twice.candidates.masked
        other = dataclasses.replace(planned, defense=NoDefense())
        unmasked = knowledge_for(planned.pairings[0], dataclasses.replace(scene, planned=other))
        assert unmasked.candidates.masked is None

    def test_nothing_is_masked_that_nobody_asks_for(self, monkeypatch):
        asked, as_trained = [], Redacted.as_trained

        def counted(defense, base, split):
            asked.append(len(split))
            return as_trained(defense, base, split)

        monkeypatch.setattr(Redacted, "as_trained", counted)
        told, scene = self.told(Membership(), Redacted())
        assert told.auxiliary is None
        assert asked == [len(scene.inputs.planted.audited)]
        told, scene = self.told(ContextualDenoiser(), SAP(eta=50))
        assert scene.inputs.candidates is not None
        assert told.candidates is None

    def test_go_to_shadow_models_as_to_the_target(self):
        plan = plan_of(
            Redacted(), task=numbered(0, 20), plant=self.PLANT, attacks=(Lira(shadows=4),)
        )
        masked = []
        for planned in plan.cells:
            scene = context_of(plan, planned)
            told = knowledge_for(planned.pairings[0], scene)
            masked.append(told.candidates.masked.ids.values.tolist())
        assert len(masked) == 5
        assert all(ids == masked[0] for ids in masked)
