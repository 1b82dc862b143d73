"""A label read from activations stands beside what the untrained model says of it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from cells import fine_tuned, first_scene, run
from label_attacks import looks_of, sent
from scipy.stats import rankdata

from leakboard.attacks.activation_delta import ActivationDelta
from leakboard.attacks.adapter_difference import AdapterDifference
from leakboard.attacks.logreg import LogReg
from leakboard.attacks.spectral import Spectral
from leakboard.attacks.unmix import Unmix
from leakboard.bench.contracts.record import Estimate, Leak
from leakboard.bench.contracts.threat import Channel, Goal, ThreatModel
from leakboard.bench.contracts.transcript import Guess, Transcript
from leakboard.bench.methods.method import spec_of
from leakboard.bench.records.store import Store
from leakboard.bench.scoring.guesses import BadGuess, Truth, score_over_training
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.randomised_response import RandomisedResponse

OVER_THE_API = (Channel.ACTIVATIONS, Channel.RECOMPUTED)
ATTACKS = (Spectral(), LogReg(), ActivationDelta(), AdapterDifference(), Unmix())


SIZES = {"limit": 192, "train": {"epochs": 3, "learning_rate": 1e-2}}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floors")
    found = run(
        *(folder, NoDefense(), Frozen(), P3EFT(servers="per-adapter", backprop="combined")),
        attacks=ATTACKS,
        **SIZES,
    )
    return dict(zip(("none", "frozen", "p3eft"), found, strict=True)), folder


def leak(record, attack, channel, view="worst"):
    (found,) = (
        one
        for one in record.leaks
        if (one.attack.name, one.channel, one.view) == (attack, channel, view)
    )
    return found


def test_floor_of_recomputed_activations_is_what_the_attack_finds_before_training(records):
    found = leak(records[0]["none"], "spectral", Channel.RECOMPUTED)
    assert found.curve[0].step == -1
    assert found.floor.value == pytest.approx(found.curve[0].success.value)
    assert found.success.value >= found.floor.value


def test_floor_of_what_was_sent_is_that_of_the_same_texts_at_the_same_moments(records):
    scene = first_scene(NoDefense(), **SIZES)
    inputs, backbone = scene.inputs, scene.backbone
    tokens, y = inputs.tokens["train"], inputs.task.splits["train"].labels
    words = torch.nn.functional.embedding(tokens.ids.values, backbone.embeddings)
    with torch.no_grad():
        h = backbone.bottom(tokens.ids.with_values(words), tokens.types, backbone.blocks)
    h0 = np.stack([one.mean(0) for one in torch.split(h.values, h.lengths.tolist())])
    found = leak(records[0]["none"], "spectral", Channel.ACTIVATIONS)
    seen = {}
    session, _, _ = fine_tuned(NoDefense(), **SIZES)  # which texts fall together, once more
    transcript = session.wire.transcript()
    for moment in transcript.moments(Channel.ACTIVATIONS):
        rows = transcript.collect(Channel.ACTIVATIONS, round=None, moment=moment).rows
        x = h0[rows] - h0[rows].mean(0)
        _, _, right = np.linalg.svd(x, full_matrices=False)
        label = y[rows]
        n = label.sum()
        area = rankdata(x @ right[0])[label == 1].sum() - n * (n + 1) / 2
        area /= n * (len(rows) - n)
        seen[moment] = max(area, 1 - area)
    assert found.floor.value == pytest.approx(max(seen.values()), abs=2e-3)
    last = leak(records[0]["none"], "spectral", Channel.ACTIVATIONS, "last")
    assert last.floor.value == pytest.approx(seen[max(seen)], abs=2e-3)


@pytest.mark.parametrize("attack", ["spectral", "logreg"])
@pytest.mark.parametrize("channel", OVER_THE_API)
def test_model_that_is_not_tuned_leaks_its_floor_and_nothing_above(records, attack, channel):
    found = leak(records[0]["frozen"], attack, channel)
    assert found.floor.value == pytest.approx(found.success.value, abs=1e-3)
    assert found.above < 1e-2


def test_floors_stand_where_activations_are_read_and_nowhere_else(records):
    for record in records[0].values():
        for one in record.leaks:
            looks_at_changes = one.attack.name in ("activation-delta", "adapter-difference")
            expected = one.channel in OVER_THE_API and not looks_at_changes
            assert (one.floor is not None) == (expected and one.success is not None)


def test_attack_that_finds_nothing_to_compare_is_skipped_with_its_reason(records):
    (only,) = (one for one in records[0]["p3eft"].leaks if one.attack.name == "adapter-difference")
    assert only.status == "skipped"
    assert only.reason.startswith("no server has activations of two adapters at one moment")


def test_floors_and_the_time_of_computing_anew_are_on_the_record(records):
    found, folder = records
    again = Store(folder).read(found["none"].key)
    assert again == found["none"]
    assert 0 < again.cost.recompute_seconds < again.cost.attack_seconds
    assert "recompute_seconds" not in again.outcome()["cost"]


def test_nothing_is_computed_anew_where_no_attack_reads_it(tmp_path):
    (record,) = run(tmp_path, NoDefense(), attacks=(Unmix(),), limit=24)
    assert record.cost.recompute_seconds is None


def test_each_look_at_all_adapters_stands_beside_those_at_each():
    x = np.random.default_rng(0).standard_normal((2, 40, 3))
    y = np.arange(40) % 2
    x[0, :, 0] += 2 * y
    seen = Transcript((sent(x[0]), sent(x[1], part=1), sent(x[1], channel=Channel.GRADIENTS)))
    looks = looks_of(LogReg(), seen, y)
    assert [(k.guess.channel, k.guess.part) for k in looks] == [
        (Channel.ACTIVATIONS, 0),
        (Channel.ACTIVATIONS, 1),
        (Channel.GRADIENTS, 0),
        (Channel.ACTIVATIONS, -1),
    ]


def test_label_that_no_adapter_has_for_itself_is_learnt_from_all_of_them():
    rng, y = np.random.default_rng(0), np.arange(300) % 2
    shared = 5 * rng.standard_normal((300, 1))
    parts = (shared, shared + (2 * y - 1)[:, None])
    apart = Transcript(tuple(sent(x, part=i, recipient=f"{i}") for i, x in enumerate(parts)))
    joined = Transcript(tuple(sent(x, part=i) for i, x in enumerate(parts)))

    def best(seen):
        return max(np.mean(k.values == k.truth) for k in looks_of(LogReg(), seen, y))

    assert best(apart) < 0.65
    assert best(joined) > 0.9


def test_guess_from_one_server_is_about_what_that_server_saw():
    inputs = first_scene(NoDefense()).inputs
    truth = Truth(inputs.tokens, inputs.task.splits, inputs.recorded)
    mine, theirs = np.arange(0, 24), np.arange(24, 48)
    messages = (
        sent(np.zeros((24, 2)), rows=mine, recipient="a", step=3),
        sent(np.zeros((24, 2)), rows=theirs, recipient="b", step=4),
    )

    def guess(rows, recipient):
        ranks = np.arange(len(rows), dtype=float)
        given = {"measure": "auc", "moment": 0, "recipient": recipient}
        return Guess("label", Channel.ACTIVATIONS, "train", rows, ranks, **given)

    seen = Transcript(messages)
    worst, _ = score_over_training([guess(mine, "a"), guess(theirs, "b")], seen, truth)
    assert [point.recipient for point in worst["curve"]] == ["a", "b"]
    assert [point.step for point in worst["curve"]] == [3, 4]
    with pytest.raises(BadGuess, match="each of the 24 examples sent on activations to b"):
        score_over_training([guess(mine, "b")], seen, truth)


def estimate(value, chance):
    return Estimate(value=value, low=value, high=value, n=9, chance=chance)


@pytest.mark.parametrize(
    ("floor", "level", "above"),
    [(None, 0.6, 0.5), (estimate(0.5, 0.5), 0.6, 0.5), (estimate(0.75, 0.5), 0.75, 0.2)],
)
def test_what_training_leaked_lies_above_guessing_and_above_the_floor(floor, level, above):
    found = Leak(
        attack=spec_of(Spectral()),
        status="ok",
        goal="label",
        success=estimate(0.8, 0.6),
        floor=floor,
    )
    assert found.level == level
    assert found.above == pytest.approx(above)
    assert found.advantage == pytest.approx(0.5)


class NeedsMore(Spectral):
    """Works, but not on activations alone."""

    name: ClassVar[str] = "needs-more"

    def guess(self, seen, knowledge, rng):
        assert Channel.GRADIENTS in seen.channels, "nothing else was sent"
        return super().guess(seen, knowledge, rng)


def test_attack_that_needs_more_than_activations_has_no_floor_and_still_counts(tmp_path):
    (record,) = run(tmp_path, NoDefense(), attacks=(NeedsMore(),), limit=32)
    found = leak(record, "needs-more", Channel.ACTIVATIONS)
    assert found.status == "ok"
    assert found.floor is None


class Wired(Spectral):
    """Reads what crossed the wire, and nothing that is computed from it."""

    name: ClassVar[str] = "wired"
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals=frozenset({Goal.LABEL}), reads=frozenset({Channel.ACTIVATIONS})
    )


class Noted(Spectral):
    """Notes what it is asked about besides what crossed the wire."""

    name: ClassVar[str] = "noted"
    asked: ClassVar[list[int]] = []

    def guess(self, seen, knowledge, rng):
        if Channel.GRADIENTS not in seen.channels:
            self.asked.append(len(seen.messages))
        return super().guess(seen, knowledge, rng)


def test_floor_is_found_once_for_cells_that_attack_the_same_batches_and_for_those_alone(tmp_path):
    cells = (NoDefense(), RandomisedResponse(epsilon=2.0))
    found = run(tmp_path, *cells, attacks=(Noted(), Spectral()), limit=64, seeds=(0, 1))
    assert len(Noted.asked) == 2
    floors = {
        (record.cell.seed, one.channel, one.view): one.floor
        for record in found
        for one in record.leaks
        if one.attack.name == "noted" and one.floor is not None
    }
    assert floors[0, Channel.ACTIVATIONS, "worst"] != floors[1, Channel.ACTIVATIONS, "worst"]
    for record in found:
        for one in record.leaks:
            if one.attack.name in ("noted", "spectral") and one.floor is not None:
                assert one.floor == floors[record.cell.seed, one.channel, one.view]
    # Another rate of learning leads through the same batches of the same texts, other settings do not.
    for times, train in (
        (2, {"learning_rate": 0.1}),
        (3, {"batch_size": 8}),
        (4, {"max_length": 8}),
    ):
        run(tmp_path, NoDefense(), attacks=(Noted(),), limit=64, train=train)
        assert len(Noted.asked) == times


def test_floor_is_computed_for_an_attack_that_does_not_read_what_it_is_computed_from(tmp_path):
    (record,) = run(tmp_path, NoDefense(), attacks=(Wired(), Spectral()), limit=64)
    floors = [leak(record, name, Channel.ACTIVATIONS).floor for name in ("wired", "spectral")]
    assert floors[0] == floors[1]
    assert floors[0].value > 0.5
