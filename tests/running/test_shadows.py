"""Shadow models: who trains them, what they tell, and what they must not."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from cells import load_tiny

from leakboard.attacks.lira import Lira
from leakboard.attacks.membership import Membership
from leakboard.bench.contracts.cell import Plant, Seeds, TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.exchange.wire import Wire
from leakboard.bench.records.frame import frame
from leakboard.bench.records.store import Store
from leakboard.bench.running import cells
from leakboard.bench.running import plan as planning
from leakboard.bench.running import runner as running
from leakboard.bench.running.attacks import attack_all
from leakboard.bench.running.cell_context import CellContext, Inputs, context_of
from leakboard.bench.running.grants import with_shadows
from leakboard.bench.running.plan import Plan, make_plan
from leakboard.bench.running.runner import Runner
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.bench.suites.suite import Suite, load_suite
from leakboard.bench.tasks.planting import plant_task
from leakboard.bench.tasks.task import Split, Task
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

N = 40
NONE = NoDefense()


def noise() -> Task:
    """Texts without rhyme or reason: nothing can be learnt of them but themselves."""
    words = sorted(w for w in load_tiny("tiny-gpt2").tokenizer.get_vocab() if w.isalpha())[:300]
    rng = np.random.default_rng(0)
    texts = tuple(" ".join(rng.choice(words, 6)) for _ in range(N + 5))
    split = Split(texts, np.zeros(N + 5, np.int64))
    return Task(
        "noise", (), {"train": split.take(np.arange(N)), "dev": split.take(np.arange(N, N + 5))}
    )


def plan_of(*attacks, defenses=(NONE,), audit: int = N, **train) -> Plan:
    settings = {"epochs": 6, "batch_size": 8, "learning_rate": 1e-2, "tune": "full"} | train
    suite = Suite(
        name="test",
        task="reviews",
        model="tiny-gpt2",
        train=TrainSettings(**settings),
        plant=Plant(audit=audit),
        defenses=defenses,
        attacks=attacks or (Lira(shadows=4),),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "load_backbone", lambda name, device: load_tiny(name))
        patch.setattr(planning, "load_task", lambda spec, data, base: noise())
        return make_plan(suite, twins=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A plan with four shadow models, its store, and its records."""
    store = Store(tmp_path_factory.mktemp("lira"))
    plan = plan_of(Lira(shadows=4), Membership())
    return plan, store, Runner(plan, store).run()


def lira_of(record):
    return [leak for leak in record.leaks if leak.attack.name == "lira"]


class TestCells:
    def test_each_candidate_is_in_half_of_the_models_by_coins_of_their_own(self):
        task, plant = noise(), Plant(audit=N)
        target = plant_task(task, plant, 0)
        shadows = [plant_task(task, plant, 0, shadow) for shadow in range(6)]
        members = np.array([one.members for one in shadows])
        assert (members.sum(0) == 3).all()
        for one in shadows:
            assert one.audited.texts == target.audited.texts
            assert 0.2 < (one.members == target.members).mean() < 0.8
            assert set(one.task.splits["train"].texts) == set(
                np.array(one.audited.texts)[one.members]
            )
        assert len({tuple(row) for row in members}) == 6

    def test_a_model_of_an_attacker_shares_the_data_of_the_target_and_none_of_its_noise(self):
        target, one, two = (Seeds.of(3, shadow) for shadow in (None, 0, 1))
        assert target.data == one.data == two.data
        for axis in ("initialisation", "order", "mechanism", "attack"):
            assert len({getattr(seeds, axis) for seeds in (target, one, two)}) == 3

    def test_other_coins_give_the_inputs_that_tokenising_again_would(self):
        plan = plan_of(audit=N // 2)
        shadow, target = plan.cells[0], plan.cells[-1]
        scene = context_of(plan, target)
        task = plan.tasks[target.cell.data_hash]
        reused = scene.inputs.with_coins(shadow.cell, task)
        afresh = Inputs.of(shadow.cell, task, scene.backbone, {})
        assert reused.task.splits["train"].texts == afresh.task.splits["train"].texts
        for name in ("train", "dev"):
            assert torch.equal(reused.tokens[name].ids.values, afresh.tokens[name].ids.values)
            assert reused.recorded[name].tolist() == afresh.recorded[name].tolist()
        ids = reused.candidates.tokens.ids.values
        assert torch.equal(ids, scene.inputs.candidates.tokens.ids.values)
        assert (reused.planted.members == afresh.planted.members).all()
        assert (reused.planted.members != scene.inputs.planted.members).any()

    def test_more_of_them_are_further_cells_and_the_target_stays(self):
        few, more = ([p.cell.key for p in plan_of(Lira(shadows=n)).cells] for n in (4, 6))
        assert len(few) == 5
        assert more[:4] == few[:4]
        assert more[-1] == few[-1] == plan_of(Membership()).cells[0].cell.key
        assert len(set(more)) == 7

    def test_a_defense_that_releases_no_model_gets_none(self):
        plan = plan_of(defenses=(SAP(), NoDefense()), tune="lora")
        assert [p.cell.shadow for p in plan.cells if p.defense.name == "sap"] == [None]
        assert len(plan.cells) == 6

    @pytest.mark.parametrize(("number", "said"), [(5, "even"), (2, "greater than or equal to 4")])
    def test_too_few_or_an_odd_number_is_refused_with_its_line(self, number, said, tmp_path):
        suite = tmp_path / "suite.yaml"
        suite.write_text(
            f"name: s\ntask: dialogues\ndefenses: none\nattacks:\n  - lira: {{shadows: {number}}}\n"
        )
        with pytest.raises(LeakboardError, match=rf"5.*shadows.*{said}"):
            load_suite(str(suite))


class TestRun:
    def test_members_of_a_model_that_memorises_are_found(self, ran):
        headline, low = lira_of(ran[2][-1])
        assert headline.metric == "AUC"
        assert (headline.success.n, headline.success.chance) == (N, 0.5)
        assert headline.success.low > 0.8
        assert advantage_low(headline) >= NEEDED
        assert headline.epsilon > 0
        assert (low.metric, low.success.chance) == ("TPR at 1% FPR", 0.01)
        assert low.success.value > 0.2

    def test_tables_hold_the_target_and_not_the_models_of_attackers(self, ran):
        rows = frame(ran[2])
        assert set(rows["key"]) == {ran[0].cells[-1].cell.key}
        assert set(rows["attack"]) == {"lira", "membership"}
        assert set(rows[rows["attack"] == "lira"]["goal"]) == {"membership"}

    def test_nothing_is_trained_again_and_whatever_the_order_the_result_is_the_same(
        self, ran, tmp_path, monkeypatch
    ):
        plan, store, records = ran
        trained: list = []
        real = running.run_cell

        def counted(scene, *rest):
            trained.append(scene.cell.shadow)
            return real(scene, *rest)

        monkeypatch.setattr(running, "run_cell", counted)
        assert Runner(plan, store).run() == records
        assert trained == []
        backwards = dataclasses.replace(plan, cells=plan.cells[::-1])
        other = Store(tmp_path)
        (late, *_) = Runner(backwards, other).run()
        assert trained == [3, 2, 1, 0, None]  # the target waits for what it needs

        def said(record):
            return sorted(json.dumps(leak) for leak in record.outcome()["leaks"])

        assert said(late) == said(records[-1])

    def test_one_that_failed_stops_the_attack_alone_until_it_is_mended(self, tmp_path, monkeypatch):
        plan, store, trained = plan_of(Membership(), Lira(shadows=4)), Store(tmp_path), []
        real = cells._run

        def fragile(scene, *rest):
            trained.append(scene.cell.shadow)
            if scene.cell.shadow == 2 and trained.count(2) < 3:
                raise RuntimeError("no luck")
            return real(scene, *rest)

        monkeypatch.setattr(cells, "_run", fragile)
        for _ in range(2):
            record = Runner(plan, store).run()[-1]
            (leak,) = lira_of(record)
            assert leak.status == "failed"
            assert "shadow model 3 of 4 ended failed: RuntimeError: no luck" in leak.reason
            assert [k.status for k in record.leaks if k.attack.name == "membership"] == ["ok"] * 2
        assert trained == [0, 1, 2, 3, None, 2]  # the target is not trained for nothing
        record = Runner(plan, store).run()[-1]
        assert [leak.status for leak in lira_of(record)] == ["ok"] * 2

    def test_every_model_is_trained_with_noise_and_coins_of_its_own(self, tmp_path, monkeypatch):
        used: list = []
        real = CellContext.session

        def watched(scene, wire):
            members = tuple(scene.inputs.planted.members)
            used.append((scene.seeds, members, scene.inputs.candidates.tokens))
            return real(scene, wire)

        monkeypatch.setattr(CellContext, "session", watched)
        Runner(plan_of(epochs=1), Store(tmp_path)).run()
        assert len(used) == 5
        assert len({seeds.mechanism for seeds, *_ in used}) == 5
        assert len({seeds.initialisation for seeds, *_ in used}) == 5
        assert len({members for _, members, _ in used}) == 5
        assert all(torch.equal(t.ids.values, used[0][2].ids.values) for *_, t in used)

    def test_damaged_record_of_one_is_no_end_of_the_run(self, ran, tmp_path):
        plan = ran[0]
        broken = Store(tmp_path)
        broken.path(plan.cells[0].cell.key).write_text("{")
        target = dataclasses.replace(plan, cells=plan.cells[-1:])
        (record,) = Runner(target, broken).run()
        assert "shadow model 1 of 4 is damaged" in lira_of(record)[0].reason


def test_the_attacker_learns_nothing_of_the_coins_of_the_target(ran):
    """With the truth turned around, it guesses the same, and so is as wrong as it was right."""
    plan, store, records = ran
    target = plan.cells[-1]
    given: list = []

    class Watched(Lira):
        """Keeps what it is told."""

        def guess(self, seen, knowledge, rng):
            given.append(knowledge)
            return super().guess(seen, knowledge, rng)

    pairing = dataclasses.replace(target.pairings[0], attack=Watched(shadows=4))
    ready, idle = with_shadows(dataclasses.replace(target, pairings=(pairing,)), store.read)
    assert idle == []
    scene = context_of(plan, ready)
    wire = Wire(NoDefense.emits, scene.inputs.recorded)
    target.defense.fine_tune(scene.session(wire))
    inputs, members = scene.inputs, scene.inputs.planted.members
    turned = dataclasses.replace(inputs.planted, members=~members)
    values = []
    for one in (inputs, dataclasses.replace(inputs, planted=turned)):
        leaks = attack_all(dataclasses.replace(scene, inputs=one), wire.transcript())
        values.append(leaks[0].success.value)
    assert values[0] == lira_of(records[-1])[0].success.value
    assert values[1] == pytest.approx(1 - values[0])
    for knowledge in given:
        assert knowledge.shadows.members.shape == (4, N)
        assert not any(
            (row == members).all() or (row == ~members).all() for row in knowledge.shadows.members
        )
        assert "members" not in {field.name for field in dataclasses.fields(knowledge)}
