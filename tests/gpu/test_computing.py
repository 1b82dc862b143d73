"""A GPU computes what a CPU does: neighbours, steps of every family, bf16, whole cells.

Where the device is a parameter, the CPU goes the same way, so that what these tests ask is itself tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from families import MODELS, WITH_SEGMENTS, saved_family
from simulated_device import NAME, as_on_a_cpu
from torch import Tensor

from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.language import LanguageModel
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.backbones.neighbours import Neighbours
from leakboard.bench.backbones.network import Network
from leakboard.bench.contracts.cell import Seeds, TrainSettings
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.defending.mechanisms import dx_noise, privatise_tokens
from leakboard.bench.exchange.model_release import losses
from leakboard.bench.exchange.session import Session
from leakboard.bench.exchange.wire import Wire

GPU = pytest.param("cuda", marks=pytest.mark.gpu)
on_each_device = pytest.mark.parametrize("device", ["cpu", GPU])
TEXTS = ["the film was good", "bad", "a very bright but slow film and not quite good", "is dull"]
PAIRS = ["food was bad", "the film is very good and bright", "quite", "not a dull film"]
CLOSE = {"float32": 1e-3, "bf16": 0.1}
"""Largest relative distance of a gradient to that of a CPU in float32."""


@on_each_device
def test_the_neighbours_are_those_that_brute_force_finds(device):
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(3_000, 48)).astype(np.float32))
    at = rng.integers(len(rows), size=2_000)
    queries = rows[at].double() + torch.from_numpy(dx_noise(len(at), 48, 4.0, rng)).double()
    found = torch.from_numpy(Neighbours(rows, device).nearest(queries.float()))
    distances = torch.cdist(queries, rows.double(), compute_mode="donot_use_mm_for_euclid_dist")
    best, nearest = distances.min(1)
    assert 0.1 < float((nearest == torch.from_numpy(at)).float().mean()) < 0.9  # noise decides
    # Another row is as good only where the two are equally far within what float32 can tell.
    chosen = distances.gather(1, found[:, None])[:, 0]
    torch.testing.assert_close(chosen, best, rtol=1e-5, atol=0)
    assert float((found == nearest).float().mean()) > 0.999


@on_each_device
def test_the_mechanism_sends_the_same_tokens_from_every_device(minilm, device):
    backbone = load_backbone("minilm", device)
    ids = torch.arange(1_000, 3_000)
    sent = [
        privatise_tokens(ids, one.embeddings, one.neighbours, 75.0, np.random.default_rng(0))
        for one in (minilm, backbone)
    ]
    assert float((sent[0] == ids).float().mean()) < 0.9
    assert float((sent[0] == sent[1]).float().mean()) > 0.999


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a tiny random model of a family."""
    made: dict[str, Path] = {}

    def by_name(name: str) -> Path:
        if name not in made:
            made[name] = saved_family(name, tmp_path_factory.mktemp(name))
        return made[name]

    return by_name


@pytest.fixture(autouse=True)
def _cpu_kernels(request) -> Iterator[None]:
    with as_on_a_cpu() if request.node.get_closest_marker("simulated") else nullcontext():
        yield


def settings(precision: str, tune: str = "lora") -> TrainSettings:
    return TrainSettings.model_validate({"precision": precision, "tune": tune})


def session_on(backbone: Backbone, name: str, precision: str, tune: str = "lora") -> Session:
    """A session on a few texts, whose rows are a batch."""
    return Session(
        train=backbone.encode(TEXTS, PAIRS if name in WITH_SEGMENTS else None, 32),
        labels=torch.tensor([0, 1, 1, 0]),
        classes=2,
        backbone=backbone,
        cut=0,
        wire=Wire(frozenset(Channel), {}),
        seeds=Seeds.of(0),
        settings=settings(precision, tune),
        progress=lambda what, items, total: iter(items),
    )


def step(session: Session, network: Network | LanguageModel) -> tuple[float, Tensor]:
    """Loss and gradient [P] of one batch, without dropout and with adapters that have an effect."""
    draw = torch.Generator().manual_seed(1)
    for parameter in network.trained():
        with torch.no_grad():
            noise = 0.05 * torch.randn(parameter.shape, generator=draw)
            parameter.add_(noise.to(parameter.device))
    network.eval()
    with session.autocast():
        loss = losses(network, session.train, session.labels).mean()
    loss.backward()
    gradients = [p.grad for p in network.trained() if p.grad is not None]
    assert all(g.dtype == torch.float32 for g in gradients)
    return loss.item(), torch.cat([g.flatten() for g in gradients]).cpu()


def apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


each_way = pytest.mark.parametrize(
    ("device", "precision"),
    [
        ("cpu", "bf16"),
        pytest.param(NAME, "float32", marks=pytest.mark.simulated),
        pytest.param("cuda", "float32", marks=pytest.mark.gpu),
        pytest.param("cuda", "bf16", marks=pytest.mark.gpu),
    ],
)


@each_way
@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_every_family_is_that_of_a_cpu_in_float32(folder, name, device, precision):
    found = []
    for where, kind in (("cpu", "float32"), (device, precision)):
        backbone = load_backbone(str(folder(name)), where)
        session = session_on(backbone, name, kind)
        network = session.network()
        found.append(step(session, network))
        vectors = network.embeddings(session.train.ids.values.to(where))
        with session.autocast():
            ragged = session.train.ids.with_values(vectors)
            assert network.features(ragged, session.train.types).dtype == torch.float32
    (loss, gradient), (other, its) = found
    if device == NAME:
        assert other == loss
        assert torch.equal(its, gradient)
        return
    # By default cuDNN rounds what it convolves in float32 to TF32, as torch's products are not.
    close = max(CLOSE[precision], 1e-2 * (name == "deberta-conv"))
    assert other == pytest.approx(loss, rel=close)
    assert 0 < apart(its, gradient) < close


@each_way
@pytest.mark.parametrize("tune", ["lora", "full"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_step_of_a_language_model_is_that_of_a_cpu_in_float32(
    folder, name, tune, device, precision
):
    found = []
    for where, kind in (("cpu", "float32"), (device, precision)):
        backbone = load_backbone(str(folder(name)), where)
        session = session_on(backbone, name, kind, tune)
        torch.manual_seed(0)
        found.append(step(session, LanguageModel(backbone, session.settings)))
    (loss, gradient), (other, its) = found
    if device == NAME:
        assert other == loss
        assert torch.equal(its, gradient)
        return
    assert other == pytest.approx(loss, rel=CLOSE[precision])
    assert 0 < apart(its, gradient) < CLOSE[precision]


@on_each_device
def test_autocast_is_bfloat16_on_the_device_where_the_suite_says_so_and_nothing_else(device):
    backbone = load_backbone("tiny-bert", device)
    layer = torch.nn.Linear(4, 4).to(device)
    for precision, kind in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        session = session_on(backbone, "bert", precision)
        with session.autocast():
            assert layer(torch.ones(2, 4, device=device)).dtype == kind
        assert layer(torch.ones(2, 4, device=device)).dtype == torch.float32
