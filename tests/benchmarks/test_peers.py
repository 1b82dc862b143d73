"""Steps, epochs and attacks beside those of the libraries that people know, in one run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from benchmarking import Figure
from plain_loops import opacus_step, plain_step, trainer_epoch
from training_steps import batch_step, epoch_session, lora_step, whole_epoch

from leakboard.attacks.kmeans import Clusters
from leakboard.attacks.logreg import LogReg
from leakboard.bench.backbones import is_on_this_machine, load_backbone
from leakboard.bench.backbones.architecture import Architecture
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.network import Network
from leakboard.bench.backbones.ragged import Tokens
from leakboard.bench.contracts import TrainSettings
from leakboard.bench.defending import PrivateGradients
from leakboard.bench.exchange.model_release import losses
from leakboard.bench.running.budget import metered
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT

BATCH, EXAMPLES, ROWS = 32, 128, 1000
PRODUCT = 480, 384, 1536
"""The shape of the largest product in a step of MiniLM."""


@pytest.fixture(scope="module")
def batch(task, minilm) -> Tokens:
    return minilm.encode(task.splits["train"].texts[:BATCH], None, 64)


def products(flops: float) -> Callable[[], None]:
    """Matrix products of so many FLOPs in float32."""
    m, k, n = PRODUCT
    left, right = torch.randn(m, k), torch.randn(k, n)
    number = max(1, round(flops / (2 * m * k * n)))

    def multiply() -> None:
        for _ in range(number):
            left @ right

    return multiply


def flops_of(step: Callable[[], object], base: Backbone) -> float:
    """FLOPs in the blocks."""
    with metered(type(base.family.stack(base.model)[0])) as meter:
        step()
    return meter().flops(Architecture.of(base.name, base.model))


def test_step_beside_a_plain_loop(comparison, minilm, batch):
    """A step of plain fine-tuning over the API, recorded and counted, against one without all that."""
    step = batch_step(NoDefense(), batch, minilm)
    plain = plain_step(minilm, batch, torch.arange(BATCH) % 2)
    comparison.measure(step, plain, products(flops_of(step, minilm)), rounds=7)
    comparison.report(
        Figure(
            "step: plain loop of transformers and peft over ours",
            1 / comparison.ratio(),
            1.0,
            0.85,
            more=True,
        ),
        Figure(
            "  share of the rate of matrix products", 1 / comparison.ratio(1), 0.5, 0.35, more=True
        ),
    )


def test_step_in_bf16_beside_a_plain_loop(comparison, minilm, batch):
    """Against a plain loop in float32, as it is without further settings."""
    labels = torch.arange(BATCH) % 2
    step = batch_step(NoDefense(), batch, minilm, precision="bf16")
    comparison.measure(step, plain_step(minilm, batch, labels), rounds=7)
    name = "step: plain loop in float32 over ours with precision bf16"
    comparison.report(Figure(name, 1 / comparison.ratio(), more=True))


def test_epoch_beside_the_trainer(comparison, task, minilm, tmp_path):
    session = epoch_session(task, minilm, "float32", EXAMPLES)
    texts = task.limited(EXAMPLES, 0).splits["train"].texts
    trainer = trainer_epoch(minilm, texts, session.labels, tmp_path, session.settings.batch_size)
    comparison.measure(whole_epoch(NoDefense(), session), trainer)
    name = f"epoch: transformers.Trainer over ours, {EXAMPLES} examples of {task.name}"
    comparison.report(Figure(name, 1 / comparison.ratio(), 1.0, 0.8, more=True))


def test_dp_sgd_beside_opacus(comparison, minilm, batch):
    """A step of DP-SGD on LoRA and head, against Opacus' hooks and optimiser."""
    labels = torch.arange(BATCH) % 2
    network = Network(minilm, 0, 2, TrainSettings(), slice(None)).train()
    optimiser = torch.optim.AdamW(network.trained(), 1e-3)
    with PrivateGradients(network, 1.0, 1.0, BATCH, np.random.default_rng(0)) as gradients:

        def step() -> None:
            gradients.add(losses(network, batch, labels))
            gradients.release()
            optimiser.step()
            optimiser.zero_grad()

        multiply = products(flops_of(step, minilm))
        comparison.measure(step, opacus_step(minilm, batch, labels), multiply, rounds=7)
    name = f"dp-sgd: Opacus' own loop over ours, a batch of {BATCH}"
    share = 1 / comparison.ratio(1)
    comparison.report(
        Figure(name, 1 / comparison.ratio(), 1.0, 0.8, more=True),
        Figure("  share of the rate of matrix products", share, 0.5, 0.2, more=True),
    )


def test_p3eft_beside_matrix_products(comparison, minilm, batch):
    step = batch_step(P3EFT(backprop="combined"), batch, minilm)
    comparison.measure(step, products(flops_of(step, minilm)), rounds=5)
    share = "p3eft: combined step, share of the rate of matrix products"
    comparison.report(Figure(share, 1 / comparison.ratio(), 0.5, 0.2, more=True))


def test_label_attacks_beside_scikit_learn(comparison):
    """k-means and logistic regression of the attacks, against the bare estimators."""
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=ROWS)
    vectors = (rng.standard_normal((ROWS, 384)) + labels[:, None]).astype(np.float32)

    def attacks() -> None:
        Clusters().read(vectors, 2, rng)
        LogReg().learn(vectors, labels, vectors, rng)

    def estimators() -> None:
        KMeans(2, n_init=10, random_state=0).fit_predict(vectors)
        LogisticRegression().fit(vectors, labels).predict(vectors)

    comparison.measure(attacks, estimators, rounds=5)
    name = f"label attacks: kmeans and logreg over scikit-learn's, {ROWS:,} vectors"
    comparison.report(Figure(name, comparison.ratio(), 1.2, 2.0))


@pytest.mark.long
@pytest.mark.parametrize("name", ["mpnet", "dialogue-gpt", "smollm2"])
def test_other_models(comparison, task, name):
    """Share of the rate of matrix products in a LoRA step of models that come as packages."""
    if not is_on_this_machine(name):
        pytest.skip(f"leakboard model get {name}")
    base = load_backbone(name)
    texts = base.encode(task.splits["train"].texts[:BATCH], None, 64)
    is_encoder = base.head is None
    step = batch_step(NoDefense(), texts, base) if is_encoder else lora_step(base, "float32")
    comparison.measure(step, products(flops_of(step, base)))
    share = f"step of {name}: share of the rate of matrix products"
    comparison.report(Figure(share, 1 / comparison.ratio(), 0.5, 0.2, more=True))
