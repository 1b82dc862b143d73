"""P³EFT hides gradients without changing them, mixes adapters secretly, and trains the same model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned, leak_of, run, session_of
from pydantic import ValidationError

from leakboard.attacks.optimiser_inversion import OptimiserInversion
from leakboard.attacks.spectral import Spectral
from leakboard.attacks.unmix import Unmix
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.transcripts import read_transcript, write_transcript
from leakboard.defenses import p3eft
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT, adversarial, mixing_weights, obfuscated


@pytest.mark.parametrize("m", [2, 3, 5])
def test_weighted_vectors_add_up_to_the_gradient_and_each_alone_is_noise(m):
    gradient = 0.01 * torch.randn(32, 64, generator=torch.Generator().manual_seed(0))
    for seed in range(20):
        vectors, alphas = obfuscated(gradient, m, 1000.0, np.random.default_rng(seed))
        assert (len(vectors), len(alphas)) == (m, m)
        back = sum(a * v for a, v in zip(alphas, vectors, strict=True))
        assert (back - gradient).norm() / gradient.norm() < 1e-4
        for vector in vectors:
            assert vector.var() >= 950 * gradient.var()
            assert abs(np.corrcoef(vector.flatten(), gradient.flatten())[0, 1]) < 0.1


PLAIN = {"weight": 0.0, "sigma": 1.0}
BRIEF = {"limit": 32, "train": {"epochs": 2, "learning_rate": 1e-2}}


@pytest.fixture(scope="module")
def in_the_clear():
    """Loss and predictions where each gradient is sent as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(p3eft, "obfuscated", lambda g, m, noise, rng: ([g], [1.0]))
        defense = P3EFT.model_construct(**P3EFT(**PLAIN).params | {"vectors": 1})
        session, inputs, tuned = fine_tuned(defense, **BRIEF)
        return session.loss, tuned.predict(inputs.tokens["dev"], "dev")


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("servers", ["one", "per-vector"])
@pytest.mark.parametrize("backprop", ["calls", "combined"])
def test_model_trained_with_noise_for_gradients_is_the_model_trained_without(
    m, servers, backprop, in_the_clear
):
    defense = P3EFT(vectors=m, servers=servers, backprop=backprop, **PLAIN)
    hidden, inputs, tuned = fine_tuned(defense, **BRIEF)
    scores = tuned.predict(inputs.tokens["dev"], "dev")
    loss, expected = in_the_clear
    assert hidden.loss == pytest.approx(loss, rel=1e-3)
    torch.testing.assert_close(scores, expected, rtol=1e-2, atol=1e-3)


SHORT = {"limit": 32, "train": {"epochs": 1}}
WHO = {  # of three vectors for each of two adapters: which server gets which, and which activations
    "one": (lambda i, j: "vendor", lambda i: "vendor"),
    "per-vector": (lambda i, j: f"server-{j}", lambda i: "server-0"),
    "per-adapter": (lambda i, j: f"server-{i}", lambda i: f"server-{i}"),
    "per-call": (lambda i, j: f"server-{i}.{j}", lambda i: f"server-{i}.0"),
}


@pytest.mark.parametrize("servers", WHO)
def test_each_server_sees_its_own_calls_and_no_others(servers):
    session, _, _ = fine_tuned(P3EFT(servers=servers, vectors=3), **SHORT)
    seen = session.wire.transcript()
    vector, adapter = WHO[servers]
    expected = {(vector(i, j), 3 * i + j) for i in range(2) for j in range(3)}
    assert set(seen.parts(Channel.GRADIENTS, 0)) == expected
    for channel in (Channel.ACTIVATIONS, Channel.PARAMETERS):
        assert set(seen.parts(channel, 0)) == {(adapter(i), i) for i in range(2)}
    told = [m for m in seen.messages if m.channel == Channel.TOKENS and m.split == "train"]
    for server in {adapter(i) for i in range(2)}:
        rows = [m.rows for m in told if m.recipient == server and m.moment is None]
        assert sorted(np.concatenate(rows)) == list(range(32))  # once, whatever it answers for


@pytest.mark.parametrize("servers", WHO)
def test_who_serves_changes_nothing_of_what_is_trained(servers, by_one_server):
    other = fine_tuned(P3EFT(servers=servers, alternating=True), **SHORT)[0]
    assert other.loss == by_one_server


@pytest.fixture(scope="module")
def by_one_server():
    return fine_tuned(P3EFT(), **SHORT)[0].loss


@pytest.mark.parametrize("servers", WHO)
def test_no_server_answers_two_steps_in_a_row_where_they_take_turns(servers, tmp_path):
    session, inputs, tuned = fine_tuned(
        P3EFT(servers=servers, alternating=True), limit=64, train={"epochs": 3}
    )
    tuned.predict(inputs.tokens["dev"], "dev")
    seen = session.wire.transcript()
    steps, last = {}, max(m.step for m in seen.messages)
    for message in seen.messages:
        if message.step >= 0:
            steps.setdefault(message.recipient, set()).add(message.step)
    assert set.union(*steps.values()) == set(range(last + 1))
    for own in steps.values():
        assert all(step + 1 not in own for step in own)
    judged = {m.recipient for m in seen.messages if m.split == "dev"}
    assert not judged & {who for who, own in steps.items() if last in own}
    write_transcript(seen, tmp_path / "wire", session.backbone, 0, 2, session.settings)
    assert len(read_transcript(tmp_path / "wire")[1].messages) == len(seen.messages)


def test_settings_of_old_records_are_read_and_keep_their_keys():
    old = {"weight": 0.1, "adapters": 2, "vectors": 2, "sigma": 5.0, "noise": 1000.0}
    for servers, now in (("one", "one"), ("separate", "per-vector")):
        params = old | {"servers": servers, "backprop": "calls"}
        assert P3EFT(**params).params == params
        assert P3EFT(**params).servers == now
    assert P3EFT(alternating=True).params != P3EFT().params


@pytest.mark.parametrize(
    ("servers", "why"),
    [(3, "3 servers are more than the 2 adapters"), (2, "2 is no way to share 2 adapters")],
)
def test_number_of_servers_is_refused_with_what_to_say_instead(servers, why):
    with pytest.raises(ValidationError, match=f"{why}: say `per-adapter`"):
        P3EFT(servers=servers)


def test_combined_backprop_sends_and_costs_what_calls_do():
    sent = []
    for backprop in ("calls", "combined"):
        session, _, _ = fine_tuned(P3EFT(backprop=backprop), limit=32, train={"epochs": 1})
        first = [m for m in session.wire.transcript().messages if m.step == 0]
        sent.append((session.wire.bytes_up, session.wire.bytes_down, session.calls, first))
    assert sent[0][:3] == sent[1][:3]
    for one, other in zip(sent[0][3], sent[1][3], strict=True):
        assert (one.channel, one.part, one.recipient) == (
            other.channel,
            other.part,
            other.recipient,
        )
        assert np.array_equal(one.values, other.values)


@pytest.mark.parametrize("n", [2, 4])
def test_mixing_weights_add_up_to_one_in_each_dimension(n):
    weights = mixing_weights(n, 50_000, 3.0, np.random.default_rng(0))
    assert weights.sum(0) == pytest.approx(np.ones(50_000))
    assert weights.mean(1) == pytest.approx(np.full(n, 1 / n), abs=0.1)
    assert weights.var(1) == pytest.approx(np.full(n, 9.0 * (n - 1)), rel=0.05)
    assert np.array_equal(
        mixing_weights(n, 3, 0.0, np.random.default_rng(0)), np.full((n, 3), 1 / n)
    )


def test_adapters_start_alike_in_effect_and_diverge():
    session, _, _ = fine_tuned(P3EFT(), limit=96, train={"epochs": 4, "learning_rate": 1e-2})
    seen = session.wire.transcript()
    first, last = seen.moments(Channel.ACTIVATIONS)[0], seen.moments(Channel.ACTIVATIONS)[-1]

    def apart(moment):
        one, two = (
            seen.collect(Channel.ACTIVATIONS, round=None, part=part, moment=moment).values
            for part in (0, 1)
        )
        return np.abs(one - two).max() / np.abs(one).max()

    assert apart(first) < 1e-6
    assert apart(last) > 1e-2


def test_regulariser_is_what_a_fitted_probe_says_of_the_wrong_labels():
    torch.manual_seed(0)
    labels = torch.tensor([0, 1] * 8)
    h = (torch.randn(16, 5) + 3 * labels[:, None]).requires_grad_()
    told = adversarial(h, labels)
    told.backward()
    # The probe is right about these, so it is badly wrong about the others.
    assert told.item() > 1.0
    towards = (h.grad * (1 - 2 * labels[:, None])).sum(0)
    moved = h.detach() - 0.5 * h.grad
    assert adversarial(moved, labels) < told
    assert towards.abs().max() > 0


def test_regulariser_of_three_classes_falls_when_classes_move_together():
    torch.manual_seed(0)
    labels = torch.arange(30) % 3
    centres = torch.eye(3)[labels] @ torch.randn(3, 8) * 4
    noise = torch.randn(30, 8)
    assert adversarial(centres + noise, labels) > 2 * adversarial(0.05 * centres + noise, labels)


def test_batch_without_one_of_the_classes_is_trained_without_the_regulariser_and_counted(
    monkeypatch,
):
    def forbidden(h, labels):
        raise AssertionError("a class is missing")

    monkeypatch.setattr(p3eft, "adversarial", forbidden)
    session, _ = session_of(P3EFT(), limit=32, train={"epochs": 1})
    session.labels[:] = 1
    P3EFT().fine_tune(session)
    assert session.skipped_batches == 2
    assert np.isfinite(session.loss).all()


def test_order_of_the_vectors_tells_nothing():
    gradient = torch.ones(4, 3)
    last = []
    for seed in range(40):
        vectors, alphas = obfuscated(gradient, 3, 1e-12, np.random.default_rng(seed))
        # Without noise the one that holds the gradient is the only one that is not nearly zero.
        last.append(int(np.argmax([v.norm() for v in vectors])))
        assert len(alphas) == 3
    assert set(last) == {0, 1, 2}


@pytest.mark.parametrize("wrong", [{"adapters": 1}, {"vectors": 1}, {"noise": 0}, {"weight": -1}])
def test_too_few_adapters_or_vectors_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        P3EFT(**wrong)


# What it hides, and from whom


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    attacks = (Spectral(), Unmix(), OptimiserInversion())
    hidden = {"weight": 0.0, "backprop": "combined"}
    train = {"epochs": 6, "learning_rate": 1e-2}
    return run(
        tmp_path_factory.mktemp("p3eft"),
        NoDefense(),
        P3EFT(**hidden),
        P3EFT(**hidden, servers="per-vector"),
        attacks=attacks,
        limit=256,
        train=train,
    )


def on(record, attack, channel, view="worst"):
    (leak,) = (
        leak
        for leak in record.leaks
        if (leak.attack.name, leak.channel, leak.view) == (attack, channel, view)
    )
    return leak.success


def test_plain_gradients_tell_every_label_and_obfuscated_ones_none_to_who_looks_at_one(attacked):
    none, one, separate = attacked
    assert on(none, "spectral", Channel.GRADIENTS).value > 0.99
    for record in (one, separate):
        found = on(record, "spectral", Channel.GRADIENTS)
        assert found.low < found.chance + 0.05


def test_one_server_unmixes_the_vectors_and_servers_apart_cannot(attacked):
    none, one, separate = attacked
    assert on(none, "unmix", Channel.GRADIENTS).value > 0.99
    assert on(one, "unmix", Channel.GRADIENTS).value > 0.95
    found = on(separate, "unmix", Channel.GRADIENTS)
    assert found.low < found.chance + 0.05


def test_steps_of_the_optimiser_tell_labels_to_every_server(attacked):
    found = [on(record, "optimiser-inversion", Channel.PARAMETERS) for record in attacked]
    assert min(one.value - one.chance for one in found) > 0
    assert found[0].value - found[0].chance > 0.05


def test_noise_comes_from_the_stream_of_the_mechanism_alone():
    session, _ = session_of(P3EFT())
    before = torch.get_rng_state()
    obfuscated(torch.ones(4, 3), 2, 1000.0, session.noise)
    mixing_weights(2, 3, 1.0, session.noise)
    assert torch.equal(before, torch.get_rng_state())


def test_label_attack_reaches_the_summary_of_one_moment_and_of_the_last(attacked):
    leak = leak_of(attacked[0], "unmix", "last", "label")
    assert leak.step == max(
        point.step for point in leak_of(attacked[0], "unmix", "worst", "label").curve
    )


def test_the_second_regulariser_sees_what_moved_and_what_differs(monkeypatch):
    seen = []

    def noted(h, labels):
        seen.append(h.detach())
        return h.sum() * 0

    monkeypatch.setattr(p3eft, "adversarial", noted)
    both = P3EFT(adaptive=0.5, adapters=2)
    session, _, _ = fine_tuned(both, limit=16, train={"epochs": 1, "batch_size": 16})
    # Both adapters start without effect: of the first batch nothing has moved but by dropout, and both are alike.
    one, two, moved, other, apart = seen
    assert torch.equal(one, two)
    assert torch.equal(moved, other)
    assert not apart.any()
    untrained = session.wire.transcript().collect(Channel.ACTIVATIONS, part=2).values
    rows = [np.abs(untrained - row).max(1).min() for row in (one - moved).numpy()]
    assert max(rows) < 1e-5


def test_without_the_second_regulariser_keys_and_messages_stay():
    assert "adaptive" not in P3EFT().params
    session, _, _ = fine_tuned(P3EFT(), limit=16, train={"epochs": 1})
    parts = {part for _, part in session.wire.transcript().parts(Channel.ACTIVATIONS)}
    assert parts == {0, 1}
