"""bf16 is another cell and trains as well, and what has to be exact is as exact in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import fine_tuned, leak_of, load_tiny, make, run, session_of
from released import plan_of
from released import run as run_one

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.eia_optimise import Optimise
from leakboard.attacks.optimiser_inversion import OptimiserInversion
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.contracts.cell import Plant, TrainSettings, digest
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.defending.dp_sgd import PrivateGradients
from leakboard.bench.exchange.api import Api
from leakboard.bench.exchange.model_release import losses
from leakboard.bench.exchange.server import Call
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT, obfuscated
from leakboard.defenses.redacted import Redacted
from leakboard.defenses.sap import SAP

BF16 = {"precision": "bf16"}
ROUNDING = 2.0**-8
"""Of a single number in bfloat16, relative."""


def test_bf16_is_another_cell_and_float32_the_one_that_it_was_before_there_was_a_choice():
    plain, named, short = (
        make(NoDefense(), train=train).cells[0].cell
        for train in ({}, {"precision": "float32"}, BF16)
    )
    assert plain.key == named.key != short.key
    older = plain.model_dump(mode="json", exclude={"plant", "shadow", "utility"})
    del older["train"]["tune"], older["train"]["precision"]
    del older["record"]["swapped"], older["record"]["answers"]
    assert plain.key == digest(older)[:16]


@pytest.mark.parametrize(
    "defense",
    [
        NoDefense(),
        Frozen(),
        SAP(),
        SAP(bottom="trainable"),
        P3EFT(),
        Redacted(detector="patterns"),
        pytest.param(
            DPSGD(epsilon=None, sigma=1.0), marks=pytest.mark.slow
        ),  # Opacus is slow to load
    ],
    ids=str,
)
def test_every_way_to_train_gives_nearly_the_scores_of_float32_in_bf16(defense):
    settings = {"limit": 64, "train": {"learning_rate": 1e-2}}
    scores = []
    for precision in ("float32", "bf16"):
        train = settings["train"] | {"precision": precision}
        _, inputs, tuned = fine_tuned(defense, **settings | {"train": train})
        scores.append(tuned.predict(inputs.tokens["dev"], "dev"))
    full, short = scores
    assert not torch.equal(full, short)
    assert short.dtype == torch.float32
    assert (full - short).abs().max() < 0.1 * full.std()


@pytest.mark.slow
def test_the_real_encoder_learns_as_much_in_bf16_as_in_float32(minilm):
    losses, right = [], []
    for precision in ("float32", "bf16"):
        train = {"epochs": 8, "batch_size": 8, "learning_rate": 3e-3, "precision": precision}
        session, inputs, tuned = fine_tuned(NoDefense(), model="minilm", limit=32, train=train)
        losses.append(session.loss)
        found = tuned.predict(inputs.tokens["train"], "train").argmax(1)
        right.append(float((found == session.labels).float().mean()))
    assert losses[1] == pytest.approx(losses[0], rel=0.1, abs=0.02)
    assert losses[1][-1] < losses[1][0] / 2
    # Of two classes; on texts that it has not seen, so few examples teach nothing.
    assert min(right) > 0.9
    assert abs(right[0] - right[1]) < 0.05


def test_classifier_scores_and_activations_are_no_rounder_than_float32():
    session, _ = session_of(NoDefense(), train=BF16)
    network, tokens = session.network().eval(), session.train.take(torch.arange(8))
    vectors = tokens.ids.with_values(network.embeddings(tokens.ids.values))
    with session.autocast():
        for values in (network(vectors, tokens.types), network.features(vectors, tokens.types)):
            assert values.dtype == torch.float32
            # The mean over tokens and the head are not computed in what the blocks are.
            assert not torch.equal(values, values.bfloat16().float())


def test_what_crosses_the_wire_and_the_noise_on_it_is_the_same_in_both_precisions():
    sent, up, down = [], set(), set()
    for precision in ("float32", "bf16"):
        session, _, _ = fine_tuned(SAP(eta=100.0), cut=1, train={"precision": precision})
        sent.append(session.wire.transcript().collect(Channel.REPRESENTATIONS).values)
        up.add(session.wire.bytes_up)
        down.add(session.wire.bytes_down)
    assert np.array_equal(*sent)
    assert (len(up), len(down)) == (1, 1)


@pytest.fixture
def split():
    """A client at bf16, a batch of it under an adapter with an effect, a gradient, and noise for it."""
    session, _ = session_of(P3EFT(), train=BF16)
    client = Api(session)
    adapter, rows = client.adapter(), torch.arange(12)
    torch.manual_seed(3)
    for parameter in adapter.values():
        torch.nn.init.normal_(parameter, std=0.2)
    gradient = 1e-2 * torch.randn(len(rows), session.backbone.width)
    vectors, alphas = obfuscated(gradient, 2, 1000.0, np.random.default_rng(0))
    dropout = client.dropout()

    def call(exact: bool) -> Call:
        return Call(session.train.take(rows), rows, adapter, dropout=dropout, exact=exact)

    return client, call, gradient, vectors, alphas


def apart(one, other):
    """Relative distance of two gradients of an adapter."""
    both = [torch.cat([value.flatten() for value in found.values()]) for found in (one, other)]
    return float((both[0] - both[1]).norm() / both[1].norm())


@pytest.mark.parametrize("once", [False, True])
def test_split_answers_add_up_to_the_gradient_under_bf16_as_in_float32(split, once):
    client, call, gradient, vectors, alphas = split
    exact = client.backward(call(True), vectors, alphas, once=once)
    session, _ = session_of(P3EFT())  # in float32
    plain = Api(session).backward(call(False), [gradient])
    assert apart(exact, plain) < 1e-4


def test_split_answers_in_bf16_would_not_add_up_and_are_refused(split):
    client, call, gradient, vectors, alphas = split
    with pytest.raises(LeakboardError, match="split into several vectors needs calls in float32"):
        client.backward(call(False), vectors, alphas)
    plain = client.backward(call(True), [gradient])
    answers = [client.backward(call(False), [vector]) for vector in vectors]
    total = {
        name: sum(a * found[name] for a, found in zip(alphas, answers, strict=True))
        for name in plain
    }
    assert apart(total, plain) > 0.1
    assert apart(client.backward(call(False), [gradient]), plain) < 4 * ROUNDING


@pytest.mark.parametrize("backprop", ["calls", "combined"])
def test_p3eft_trains_under_bf16_what_it_trains_in_float32(backprop):
    full, short = (
        fine_tuned(P3EFT(backprop=backprop), limit=32, train={"precision": precision})[0]
        for precision in ("float32", "bf16")
    )
    assert short.loss == full.loss


@pytest.mark.slow
@pytest.mark.parametrize("hooked", [True, False])
def test_gradients_of_single_examples_are_clipped_in_float32_whatever_the_precision(hooked):
    backbone = load_tiny("tiny-gpt2")
    tokens = backbone.encode(["call parcel at 3", "call refund at 40"], None, 16)
    network = LanguageModel(backbone, TrainSettings(tune="lora" if hooked else "full")).train()
    rng = np.random.default_rng(0)
    for one in (tokens.take(torch.tensor([row])) for row in range(2)):
        with PrivateGradients(network, 1e-3, 0.0, 1.0, rng, hooked) as gradients:
            with torch.autocast("cpu", torch.bfloat16):
                found = losses(network, one, torch.zeros(1))
            gradients.add(found)
            assert all(total.dtype == torch.float32 for total in gradients.sums)
            norm = torch.cat([total.flatten() for total in gradients.sums]).norm()
        assert float(norm) == pytest.approx(1e-3, rel=1e-5)


@pytest.mark.slow
def test_a_language_model_is_trained_in_bf16_and_its_secrets_are_ranked_in_float32():
    attacks = (CanaryExposure(releases="last"),)
    plant = Plant(canaries="my id is {digits}", copies=(10,), unseen=20)
    settings = {"plant": plant, "attacks": attacks, "epochs": 8, "learning_rate": 1e-2}
    full, short = (
        run_one(plan_of(NoDefense(), tune="full", precision=precision, **settings))
        for precision in ("float32", "bf16")
    )
    assert (short.status, short.reason) == ("ok", "")
    assert short.loss != full.loss
    assert short.loss == pytest.approx(full.loss, rel=0.02)
    ranks = [r.leaks[0].raw for r in (full, short)]
    assert ranks[0].keys() == ranks[1].keys()
    for one, other in zip(full.leaks, short.leaks, strict=True):
        assert other.success.value == pytest.approx(one.success.value, abs=1.0)


@pytest.mark.slow
def test_attacks_that_compute_with_the_model_themselves_work_on_cells_in_bf16(tmp_path):
    deep = {"cut": 1, "limit": 24, "train": BF16, "attacks": (Optimise(),)}
    (record,) = run(tmp_path, SAP(eta=None), **deep)
    assert leak_of(record, "eia-optimise").success.value > 0.95
    api = {"limit": 192, "train": BF16 | {"learning_rate": 3e-3, "batch_size": 48}}
    (record,) = run(tmp_path, NoDefense(), attacks=(OptimiserInversion(),), **api)
    (leak, *_) = record.leaks
    assert leak.status == "ok"
    assert leak.success.value > leak.success.chance
