"""Models that are handed out: what is planted, what is trained, what attacks on them find."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from cells import load_tiny

from attacks.canary_exposure import CanaryExposure
from attacks.membership import Membership
from bench.attacking.canaries import expected_unseen
from bench.backbones.language import LanguageModel, covered, offsets
from bench.contracts.cell import digest
from bench.contracts.channels import Channel
from bench.contracts.errors import LeakboardError
from bench.contracts.guess import Guess
from bench.contracts.settings import Plant, Recording, TrainSettings
from bench.contracts.threat import Goal
from bench.contracts.transcript import Message, Transcript
from bench.defending import private, private_training
from bench.defending.redaction import all_secrets, first_of_each
from bench.exchange import released
from bench.exchange.released import losses, restored
from bench.methods.defense import Defense
from bench.records.store import from_text, to_text
from bench.running import plan as planning
from bench.running.cells import run_cell
from bench.running.inputs import Inputs
from bench.running.plan import Plan, make_plan
from bench.running.reporting import Silent
from bench.scoring.checks import flags
from bench.scoring.guesses import BadGuess, Truth
from bench.scoring.memory import EXTRACTED, score_canaries, score_members
from bench.scoring.perplexity import judged
from bench.suites.suite import Suite, load_suite
from bench.tasks.planting import CEILING, TRIES, Canary, Planted, planted
from bench.tasks.reviews import reviews
from bench.tasks.spans import Span
from bench.tasks.task import Split, Task
from defenses.blackout import Blackout
from defenses.crt import CRT
from defenses.dpsgd import DPSGD
from defenses.jft import JFT
from defenses.none import NoDefense
from defenses.redacted import Redacted

FORM = "My ID is {digits}."
TEXTS = Task(
    "texts",
    (),
    {
        "train": Split(
            tuple(f"call {name} at {n}" for n, name in enumerate(["parcel", "refund"] * 20)),
            np.zeros(40, np.int64),
            secrets=tuple((Span(5, 11, "name"),) for _ in range(40)),
        ),
        "dev": Split(("call parcel at 3", "call refund at 40"), np.zeros(2, np.int64)),
    },
)


def plan_of(
    *defenses: Defense,
    task: Task = TEXTS,
    plant: Plant | None = None,
    attacks=(),
    limit: int | None = 40,
    **train,
) -> Plan:
    suite = Suite(
        name="test",
        task="reviews",
        model="tiny-gpt2" if not task.labels else "tiny-bert",
        limit=limit,
        train=TrainSettings(**{"epochs": 1, "batch_size": 8} | train),
        record=Recording(examples=8),
        plant=plant,
        defenses=defenses,
        attacks=attacks,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "load_backbone", lambda name, device: load_tiny(name))
        patch.setattr(planning, "load_task", lambda spec, data, base: task)
        return make_plan(suite)


def run(plan: Plan, number: int = 0):
    cell = plan.cells[number]
    task, backbone = plan.tasks[cell.cell.data_hash], plan.backbones[cell.cell.model_hash]
    inputs = Inputs.of(cell.cell, task, backbone)
    return run_cell(cell, inputs, backbone, cell.pairings, Silent())


class TestPlanting:
    def test_each_canary_stands_in_train_as_often_as_it_says_and_its_span_is_its_secret(self):
        plant = Plant(canaries=(FORM, "Pin {digits}"), copies=(1, 3), each=2, unseen=4)
        found = planted(TEXTS, plant, 0)
        texts = found.task.splits["train"].texts
        for canary in found.drawn:
            text = plant.canaries[canary.form].replace("{digits}", f"{canary.secret:06d}")
            assert texts.count(text) == canary.copies
        assert len(found.canaries) == 2 * 2 * (1 + 3)
        for row, span in found.canaries.items():
            assert texts[row][span.start : span.end].isdigit()
            assert span.end - span.start == 6
            assert span in found.task.splits["train"].secrets[row]
        assert sorted({c.copies for c in found.drawn}) == [0, 1, 3]

    def test_members_are_in_train_and_the_others_are_not(self):
        found = planted(TEXTS, Plant(audit=30), 1)
        texts = found.task.splits["train"].texts
        whole = TEXTS.splits["train"].texts
        for text, member in zip(found.audited.texts, found.members, strict=True):
            assert (text in texts) == bool(member)
        assert len(texts) == len(whole) - int((~found.members).sum())
        assert 5 < found.members.sum() < 25

    def test_seed_decides_secrets_and_coins(self):
        plant = Plant(canaries=FORM, audit=20)
        one, same, other = (planted(TEXTS, plant, seed) for seed in (0, 0, 1))
        assert one.drawn == same.drawn != other.drawn
        assert (one.members == same.members).all()
        assert one.task.hash == same.task.hash != other.task.hash

    def test_canary_in_a_task_with_labels_and_too_many_to_audit_are_refused(self):
        with pytest.raises(LeakboardError, match="language modelling"):
            planted(reviews(), Plant(canaries=FORM), 0)
        with pytest.raises(LeakboardError, match="41 examples to audit"):
            planted(TEXTS, Plant(audit=41), 0)

    @pytest.mark.parametrize("bad", [{"canaries": "My ID"}, {"copies": 0}, {"audit": -1}])
    def test_bad_plant_is_refused(self, bad):
        with pytest.raises(ValueError, match=r"digits|copies|numbers|greater"):
            Plant(**bad)

    def test_keys_of_cells_without_it_are_those_of_the_first_records(self):
        cell = plan_of(DPSGD(), task=reviews()).cells[0].cell
        assert "plant" in cell.model_dump()
        bare = cell.model_dump(mode="json")
        del bare["plant"], bare["shadow"], bare["train"]["tune"]

        assert cell.key == digest(bare)[:16]
        changed = cell.model_copy(update={"plant": Plant(audit=3)})
        assert changed.key != cell.key
        full = cell.train.model_copy(update={"tune": "full"})
        assert cell.model_copy(update={"train": full}).key != cell.key


class TestLanguageModel:
    def test_loss_of_a_text_is_that_of_each_token_given_those_before(self):
        backbone = load_tiny("tiny-gpt2")
        network = LanguageModel(backbone, TrainSettings()).eval()
        tokens = backbone.encode(["call parcel at 3", "the"], None, 16)
        loss, _, mask = network.losses(tokens)
        for row in range(2):
            ids = tokens.take(torch.tensor([row])).ids.values
            with torch.no_grad():
                hidden = backbone.model(ids[None]).last_hidden_state[0]
            log_p = (hidden @ backbone.head.T).log_softmax(-1)
            expected = [-float(log_p[i, ids[i + 1]]) for i in range(len(ids) - 1)]
            assert loss[row][mask[row]].tolist() == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("tune", ["lora", "full"])
    def test_what_was_released_makes_the_same_model_again(self, tune):
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

    def test_encoder_is_refused(self):
        with pytest.raises(LeakboardError, match="causal"):
            LanguageModel(load_tiny("tiny-bert"), TrainSettings())

    def test_secrets_do_not_count_for_utility_and_all_tokens_for_perplexity(self):
        backbone = load_tiny("tiny-gpt2")
        network = LanguageModel(backbone, TrainSettings())
        texts = ("call parcel at 3", "call refund at 40")
        tokens = backbone.encode(texts, None, 16, opened=True)
        open_ = Split(texts, np.zeros(2, np.int64))
        marked = dataclasses.replace(open_, secrets=((Span(5, 11, "name"),), ()))
        one, other = (judged(network, backbone, s, tokens, 16) for s in (open_, marked))
        assert sum(one["predictions"]["tokens"]) == sum(other["predictions"]["tokens"]) + 1
        assert one["measures"] == other["measures"]
        means = losses(network, tokens, torch.zeros(2)).detach()
        total = float((means * (tokens.lengths - 1)).sum())
        per_token = one["measures"]["perplexity per token"].value
        assert per_token == pytest.approx(np.exp(total / int((tokens.lengths - 1).sum())), rel=1e-4)
        per_word = one["measures"]["perplexity per word"].value
        assert per_word == pytest.approx(np.exp(total / 8), rel=1e-4)

    def test_token_is_covered_where_it_shares_a_character_with_a_secret(self):
        where = offsets(load_tiny("tiny-gpt2"), ["call parcel at 3"], 16)[0]
        text = "call parcel at 3"
        hit = [
            text[a:b]
            for (a, b), c in zip(where, covered(where, [Span(6, 7, "x")]), strict=True)
            if c
        ]
        assert hit == ["parcel"]


class TestDefenses:
    @pytest.mark.parametrize("tune", ["lora", "full"])
    @pytest.mark.parametrize(
        "defense",
        [
            NoDefense(),
            DPSGD(epsilon=3),
            Redacted(detector="exact"),
            CRT(detector="exact", epsilon=8),
            JFT(detector="exact", epsilon=8),
            JFT(detector="exact", epsilon=8, phase1="manual", checked=0.5),
            JFT(detector="exact", epsilon=8, phase1="light-noise"),
        ],
        ids=str,
    )
    def test_each_trains_a_language_model_and_its_record_survives_the_disk(
        self, defense, tune, tmp_path
    ):
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

    def test_epsilon_is_that_of_the_noise_and_less_of_it_is_more_noise(self):
        claims = [run(plan_of(DPSGD(epsilon=e))).claim.parameters for e in (1.0, 8.0)]
        assert [c["epsilon"] for c in claims] == [1.0, 8.0]
        assert claims[0]["sigma"] > claims[1]["sigma"]
        given = run(plan_of(DPSGD(epsilon=None, sigma=claims[1]["sigma"]))).claim.parameters
        assert given["epsilon"] == pytest.approx(8.0, rel=0.02)
        assert given["rate"] == 8 / 40
        assert given["steps"] == 5

    @pytest.mark.parametrize("delta", [0.5, 1 / 40])
    def test_delta_that_protects_nobody_is_refused(self, delta):
        record = run(plan_of(DPSGD(delta=delta)))
        assert record.status == "failed"
        assert "delta: expected a number between 0 and 1/40" in record.reason

    @pytest.mark.parametrize("bad", ["epsilon: 0", "epsilon: -3", "delta: 1", "clip: 0"])
    def test_budget_that_is_none_is_refused_with_its_line(self, bad, tmp_path):
        suite = tmp_path / "suite.yaml"
        lines = ["name: s", "task: dialogues", "defenses:", f"  - dpsgd: {{{bad}}}", "attacks: all"]
        suite.write_text("\n".join(lines))
        with pytest.raises(LeakboardError, match=rf":4:.*{bad.split(':')[0]}.*(greater|less) than"):
            load_suite(str(suite))

    def test_fewer_examples_than_a_batch_holds_are_in_every_batch(self):
        record = run(plan_of(DPSGD(epsilon=8), limit=5, epochs=3))
        assert (record.status, record.reason) == ("ok", "")
        claim = record.claim.parameters
        assert (claim["rate"], claim["steps"]) == (1.0, 3)
        # Google's accountant is asked in test_private whether such a σ spends that ε.
        assert private.spent(claim["sigma"], 1.0, 3, claim["delta"]) <= 8 * 1.01

    def test_epsilon_and_sigma_together_are_refused(self):
        with pytest.raises(ValueError, match="epsilon or sigma"):
            DPSGD(epsilon=1, sigma=1)

    def test_defense_of_an_api_says_that_it_cannot_train_a_language_model(self):
        from defenses.sap import SAP

        record = run(plan_of(SAP()))
        assert record.status == "skipped"
        assert "trains for classification" in record.reason

    def test_canary_is_masked_or_missed_as_the_defense_says(self):
        class Seen(Redacted):
            """Keeps what it would train on."""

            def fine_tune(self, session):
                spans = self.found(session)
                kept.append(self.redacted(session, spans)[1])
                return super().fine_tune(session)

        kept: list = []
        plant = Plant(canaries=FORM, copies=(3,), unseen=0)
        for canaries in ("masked", "missed"):
            assert (
                run(plan_of(Seen(detector="exact", canaries=canaries), plant=plant)).status == "ok"
            )
        masked, missed = kept
        assert masked[-1] == "My ID is <MASK>."
        assert missed[-1] != masked[-1]
        assert missed[-1].startswith("My ID is ")
        assert masked[:-3] == missed[:-3]
        assert all(text.startswith("call <MASK> at") for text in masked[:-3])

    def test_jft_shows_phase_one_redacted_texts_and_phase_two_the_originals(self, monkeypatch):
        shown: list = []
        backbone = load_tiny("tiny-gpt2")
        names = backbone.tokenizer.convert_tokens_to_ids(["parcel", "refund"])
        train, private = released.train, private_training.Private.train_privately

        def watched(session, network, tokens, *args, **kwargs):
            shown.append(("plain", bool(torch.isin(tokens.ids.values, torch.tensor(names)).any())))
            return train(session, network, tokens, *args, **kwargs)

        def watched_private(self, session, network, tokens, rows):
            shown.append(("dp", bool(torch.isin(tokens.ids.values, torch.tensor(names)).any())))
            return private(self, session, network, tokens, rows)

        monkeypatch.setattr(released, "train", watched)
        monkeypatch.setattr(private_training.Private, "train_privately", watched_private)
        assert run(plan_of(JFT(detector="exact", epsilon=8))).status == "ok"
        assert shown == [("plain", False), ("dp", True)]

    def test_hand_checked_texts_hold_no_secret_that_is_known(self):
        split, canary = TEXTS.splits["train"], Span(12, 18, "canary")
        found = all_secrets(split, {0: canary}, [()] * len(split))
        assert found[0] == (Span(5, 11, "name"), canary)
        assert found[1] == (Span(5, 11, "name"),)

    def test_deduplication_keeps_the_first_of_each_text(self):
        assert first_of_each(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 3]


class TestScores:
    @staticmethod
    def seen() -> Transcript:
        vector = np.zeros((1, 3), np.float32)
        zero = np.zeros(1, np.int64)
        return Transcript(
            tuple(
                Message(
                    Channel.MODEL, "train", r, "customer", "public", 0, zero, vector, step=10 * r
                )
                for r in (0, 1)
            )
        )

    @staticmethod
    def truth(*canaries: Canary, members=None) -> Truth:
        return Truth({}, {}, {}, Planted(TEXTS, canaries, {}, None, members))

    def guess(self, values, measure="exposure", round=0) -> Guess:
        rows = np.arange(len(values))
        return Guess(
            Goal.MEMORISATION, Channel.MODEL, "train", rows, values, measure=measure, round=round
        )

    def test_exposure_is_that_of_the_planted_secret_at_every_release(self):
        early, late = np.ones((2, 1, 10**6), np.float32)
        early[0, :3] = 0  # secret 7 is among 999,997 equals
        late[0, 7] = 0
        truth = self.truth(Canary(0, 7, 10), Canary(0, 9, 0), Canary(0, 11, 0))
        guesses = [self.guess(late, round=1), self.guess(early)]
        ten, never = score_canaries(guesses, self.seen(), truth)
        assert ten["success"].value == pytest.approx(CEILING)
        assert ten["view"] == "planted 10 times"
        assert [p.success.value for p in ten["curve"]] == pytest.approx([1.0, CEILING], abs=1e-4)
        assert [p.step for p in ten["curve"]] == [0, 10]
        assert ten["success"].chance == pytest.approx(expected_unseen(10**6))
        # One canary says nothing about others.
        assert (ten["success"].low, ten["success"].high) == (0.0, CEILING)
        assert never["view"] == "never planted"
        assert never["units"] == 2

    def test_extraction_counts_canaries_whose_digits_were_printed(self):
        truth = self.truth(Canary(0, 7, 10), Canary(0, 9, 0))
        ten, never = score_canaries([self.guess(np.array([[7]]), "extraction")], self.seen(), truth)
        assert (ten["success"].value, never["success"].value) == (1.0, 0.0)
        eight = np.arange(8)[None]
        ten, never = score_canaries([self.guess(eight, "beam extraction")], self.seen(), truth)
        assert (ten["success"].value, never["success"].value) == (1.0, 0.0)
        assert ten["success"].chance == pytest.approx(8e-6)
        for measure, allowed in TRIES.items():  # who prints every number extracts nothing
            with pytest.raises(BadGuess, match=f"prints at most {allowed} secrets"):
                score_canaries([self.guess(np.arange(9)[None], measure)], self.seen(), truth)

    def test_guess_of_another_shape_is_refused(self):
        truth = self.truth(Canary(0, 7, 10))
        for bad in (np.ones((1, 10)), np.ones((2, 10**6)), np.full((1, 10**6), np.nan)):
            with pytest.raises(BadGuess):
                score_canaries([self.guess(bad)], self.seen(), truth)

    def test_ranking_of_members_gives_auc_and_a_bound(self):
        members = np.arange(200) % 2 == 0
        truth = self.truth(members=members)

        def scored(values):
            rows = np.arange(len(values))
            guess = Guess(
                Goal.MEMBERSHIP, Channel.MODEL, "train", rows, values, measure="membership"
            )
            return score_members([guess], self.seen(), truth)[0]

        told, blind = scored(members.astype(float)), scored(np.arange(200) // 2 * 1.0)
        assert told["success"].value == 1.0
        assert told["epsilon"] > 3
        assert blind["success"].value == pytest.approx(0.5, abs=0.02)
        assert blind["epsilon"] == 0
        with pytest.raises(BadGuess):
            scored(np.arange(10.0))


def test_attack_on_canaries_finds_what_was_planted_often_and_not_what_was_not():
    plant = Plant(canaries="my id is {digits}", copies=(60,), unseen=20)
    attack, settings = CanaryExposure(releases="last"), {"tune": "full", "epochs": 6}
    plan = plan_of(NoDefense(), plant=plant, attacks=(attack,), learning_rate=1e-2, **settings)
    sixty, never = (leak for leak in run(plan).leaks if leak.metric == "exposure")
    assert sixty.success.value > 8
    assert never.success.low < expected_unseen(10**6) < never.success.high


class Trained(Blackout):
    """A control that is none."""

    def fine_tune(self, session):
        return NoDefense().fine_tune(session)


@pytest.mark.parametrize("kind", [Blackout, Trained])
def test_attacks_on_memory_find_nothing_in_pure_noise_and_a_flag_says_if_they_do(kind):
    plant = Plant(canaries="my id is {digits}", copies=(40,), each=4, unseen=20, audit=40)
    attacks, settings = (CanaryExposure(releases="last"), Membership()), {"learning_rate": 1e-2}
    plan = plan_of(kind(), plant=plant, attacks=attacks, tune="full", epochs=4, **settings)
    record = run(plan)
    assert (record.status, record.reason) == ("ok", "")
    metrics = {leak.metric for leak in record.leaks if leak.success}
    assert metrics == {"exposure", *EXTRACTED.values(), "AUC", "TPR at 1% FPR"}
    assert ("leak-on-blackout" in str(flags([record]))) == (kind is Trained)


def test_dpsgd_of_all_weights_clips_over_all_of_them_and_hides_all_of_them():
    backbone = load_tiny("tiny-gpt2")
    tokens = backbone.encode(["call parcel at 3"], None, 16)
    network = LanguageModel(backbone, TrainSettings(tune="full")).train()
    everything = list(network.parameters())
    rng = np.random.default_rng(0)
    with private.PrivateGradients(network, 0.1, 0.0, 1.0, rng, hooked=False) as gradients:
        gradients.add(losses(network, tokens, torch.zeros(1)))
        gradients.release()
    norm = torch.cat([p.grad.flatten() for p in everything]).norm()
    assert float(norm) == pytest.approx(0.1, rel=1e-4)
    with private.PrivateGradients(network, 0.1, 1.0, 1.0, rng, hooked=False) as gradients:
        gradients.release()
    assert all(p.grad.abs().min() > 0 for p in everything)


@pytest.mark.parametrize("noise", [True, False])
def test_canary_planted_ten_times_is_hidden_by_dpsgd_and_found_where_its_noise_is_missing(
    noise, monkeypatch
):
    init = private.PrivateGradients.__init__

    def drawn(self, module, clip, sigma, *rest):
        init(self, module, clip, sigma if noise else 0.0, *rest)

    monkeypatch.setattr(private.PrivateGradients, "__init__", drawn)
    plant = Plant(canaries="my id is {digits}", copies=(10,), unseen=20)
    settings = {"attacks": (CanaryExposure(releases="last"),), "epochs": 20, "learning_rate": 1e-2}
    record = run(plan_of(DPSGD(epsilon=3, clip=10), plant=plant, **settings))
    ten, never = (leak.success.value for leak in record.leaks if leak.metric == "exposure")
    assert (ten - never <= 3) == noise


def audited(defense: Defense, task: Task, **settings):
    """The record of a cell in which a coin was thrown for every example, and its only leak."""
    n = len(task.splits["train"])
    plan = plan_of(
        defense, task=task, plant=Plant(audit=n), attacks=(Membership(),), limit=None, **settings
    )
    record = run(plan)
    assert (record.status, record.reason) == ("ok", "")
    return record, record.leaks[0]


def test_members_of_a_language_model_that_memorises_are_told_from_the_others():
    words = [w for w in load_tiny("tiny-gpt2").tokenizer.get_vocab() if w.isalpha()][:300]
    rng = np.random.default_rng(0)
    texts = tuple(" ".join(rng.choice(words, 8)) for _ in range(100))
    split = Split(texts, np.zeros(100, np.int64))
    task = Task("noise", (), {"train": split, "dev": split.take(np.arange(5))})
    _, leak = audited(NoDefense(), task, tune="full", epochs=10, learning_rate=1e-2)
    assert leak.success.low > 0.9
    assert leak.certificate


def test_dpsgd_without_its_noise_is_caught_by_the_audit_and_with_it_is_not(monkeypatch):
    whole = reviews().splits["train"]
    labels = np.random.default_rng(0).integers(0, 2, 300)  # nothing to learn but the examples
    split = Split(whole.texts[:300], labels)
    task = Task("random", ("a", "b"), {"train": split, "dev": split.take(np.arange(5))})
    settings = {"epochs": 30, "learning_rate": 3e-2}
    sound, leak = audited(DPSGD(epsilon=0.5, clip=10), task, **settings)
    assert leak.epsilon <= 0.5
    assert "claim-violated" not in str(flags([sound]))
    init = private.PrivateGradients.__init__

    def silent(self, module, clip, sigma, *rest):
        init(self, module, clip, 0.0, *rest)

    monkeypatch.setattr(private.PrivateGradients, "__init__", silent)
    broken, leak = audited(DPSGD(epsilon=0.1, clip=10), task, **settings)
    assert leak.epsilon > 0.1
    assert "claim-violated" in str(flags([broken]))
