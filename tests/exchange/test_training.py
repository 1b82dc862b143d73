"""The fine-tuning loop, and that training through the wire is plain training."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cells import run, session_of
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.exchange.training import MOMENTS, Diverged, Loop, windows
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP


@given(
    st.integers(1, 400), st.sampled_from([1, 4, 16, 32, 300]), st.integers(1, 4), st.integers(0, 99)
)
def test_windows_are_short_disjoint_inside_an_epoch_and_hold_first_and_last_step(
    steps, size, epochs, rest
):
    last = torch.arange(1 + rest % size)
    of_one = [torch.arange(size)] * (steps - 1) + [last]
    found = windows([of_one] * epochs)
    total = steps * epochs
    assert {0, total - 1} <= found.keys() <= set(range(total))
    by_moment = {m: [s for s, of in found.items() if of == m] for m in set(found.values())}
    assert len(by_moment) <= MOMENTS
    assert sorted(by_moment) == list(range(len(by_moment)))
    widths = set()
    for inside in by_moment.values():
        assert sorted(inside) == list(range(min(inside), max(inside) + 1))
        assert min(inside) // steps == max(inside) // steps
        widths.add(len(inside))
    assert len(widths) == 1  # two windows that overlap would leave one of them shorter
    starts = [min(inside) for _, inside in sorted(by_moment.items())]
    assert starts == sorted(starts)


def loop(step, n=64, classes=2, parameter=None, group=None, **settings):
    parameter = torch.nn.Parameter(torch.zeros(1)) if parameter is None else parameter
    settings = TrainSettings(**{"epochs": 1, "batch_size": 1} | settings)
    groups = [{"params": [parameter]} | (group or {})]
    return Loop(settings, 0, classes).fit(step, groups, torch.ones(n, dtype=torch.long))


def steps_taken(**settings):
    """How far each step moves a parameter whose gradient is 1; with AdamW that is the rate."""
    parameter, places = torch.nn.Parameter(torch.zeros(1)), []

    def step(_rows, _epoch):
        places.append(parameter.item())
        parameter.grad = torch.ones(1)
        return 0.5

    loop(step, parameter=parameter, weight_decay=0, learning_rate=0.1, **settings)
    return -np.diff([*places, parameter.item()])


def test_rate_falls_linearly_to_almost_zero():
    expected = 0.1 * (64 - np.arange(64)) / 64
    assert steps_taken() == pytest.approx(expected, rel=1e-3)


def test_rate_rises_during_warm_up_and_then_falls():
    taken = steps_taken(warmup=0.25)
    up = 0.1 * np.arange(1, 17) / 16
    down = 0.1 * (48 - np.arange(48)) / 48
    assert taken == pytest.approx([*up, *down], rel=1e-3)


def test_a_group_may_have_its_own_rate():
    parameter = torch.nn.Parameter(torch.zeros(1))

    def step(_rows, _epoch):
        parameter.grad = torch.ones(1)
        return 0.5

    loop(step, n=1, parameter=parameter, group={"lr": 1e-5, "weight_decay": 0.0})
    assert parameter.item() == pytest.approx(-1e-5, rel=1e-3)


def test_gradients_do_not_add_up_over_steps_and_are_clipped():
    parameter, seen = torch.nn.Parameter(torch.zeros(1)), []

    def step(_rows, _epoch):
        seen.append(parameter.grad)
        (parameter * 1000).sum().backward()
        return 0.5

    loop(step, n=3, parameter=parameter)
    assert seen == [None] * 3
    assert parameter.grad.item() == pytest.approx(1, rel=1e-3)


def test_dropout_is_drawn_with_the_seed_of_the_loop_and_nothing_else():
    def drawn(outside, seed):
        torch.manual_seed(outside)
        parameter, values = torch.nn.Parameter(torch.zeros(1)), []
        settings = TrainSettings(epochs=1, batch_size=4)

        def step(_rows, _epoch):
            values.append(torch.rand(1).item())
            return 0.5

        groups, lengths = [{"params": [parameter]}], torch.ones(9, dtype=torch.long)
        Loop(settings, seed, classes=2).fit(step, groups, lengths)
        return values

    assert drawn(1, 5) == drawn(2, 5)
    assert drawn(1, 5) != drawn(1, 6)


def test_loss_moments_are_means_over_consecutive_stretches():
    losses = iter(np.arange(100) / 100)
    moments = loop(lambda _rows, _epoch: float(next(losses)), n=100)
    assert moments == pytest.approx([(5 * i + 2) / 100 for i in range(MOMENTS)])
    assert loop(lambda _rows, _epoch: 0.25, n=3) == [0.25] * 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_loss_that_is_not_finite_is_divergence_with_its_step(bad):
    losses = iter([0.7, bad])
    with pytest.raises(Diverged, match=f"loss is {bad} at step 2"):
        loop(lambda _rows, _epoch: next(losses))


def test_gradient_that_is_not_finite_is_divergence_before_it_is_applied():
    parameter = torch.nn.Parameter(torch.zeros(1))

    def step(_rows, _epoch):
        parameter.grad = torch.full((1,), math.nan)
        return 0.5

    with pytest.raises(Diverged, match="gradient norm is nan at step 1"):
        loop(step, parameter=parameter)
    assert parameter.item() == 0


def test_high_mean_loss_is_divergence_but_one_high_loss_is_not():
    with pytest.raises(Diverged, match=r"last 20 steps is 4 at step 20, above 3\.47"):
        loop(lambda _rows, _epoch: 4.0)
    assert loop(lambda _rows, _epoch: 4.0, classes=3)
    losses = iter([50.0] + [0.1] * 63)
    assert max(loop(lambda _rows, _epoch: next(losses))) > 10


def test_diverged_cell_is_a_record_with_its_reason(tmp_path):
    train = {"learning_rate": 1e4, "epochs": 8, "batch_size": 4}
    (record,) = run(tmp_path, SAP(), train=train)
    assert record.status == "diverged"
    assert "at step" in record.reason
    assert (record.utility, record.leaks) == (None, [])


@pytest.mark.parametrize("defense", [NoDefense(), SAP(eta=None), SAP(eta=None, bottom="trainable")])
def test_gradients_through_the_wire_are_those_of_the_whole_network(defense, monkeypatch):
    session, _ = session_of(defense)
    session.settings = TrainSettings(epochs=1, batch_size=16)
    networks = []
    build = type(session).network
    monkeypatch.setattr(
        type(session), "network", lambda self, **k: networks.append(build(self, **k)) or networks[0]
    )
    found = {}

    def one_step(step, *groups):
        network = networks[0].eval()  # no dropout: both ways see one network
        # LoRA's B starts at zero, which would leave the gradient of A at zero.
        torch.manual_seed(1)
        for parameter in network.trained():
            torch.nn.init.normal_(parameter, std=0.1)
        # Over the API the customer holds the adapter, in the order of the network's own.
        given = [parameter for group in groups for parameter in group["params"]]
        held = dict(
            zip((k for k, p in network.named_parameters() if p.requires_grad), given, strict=False)
        )
        if not isinstance(defense, NoDefense):
            held = dict(network.named_parameters())
        with torch.no_grad():
            for name, parameter in held.items():
                parameter.copy_(network.get_parameter(name))
        rows = torch.arange(16, 32)
        monkeypatch.setattr(network, "train", lambda mode: network)
        found["loss"] = step(rows, 0)
        found["wire"] = {k: p.grad.clone() for k, p in held.items() if p.grad is not None}
        network.zero_grad(set_to_none=True)
        tokens = session.train.take(rows)
        ids = tokens.ids.padded().long()
        out = network.encoder(
            input_ids=ids, attention_mask=tokens.ids.mask().long(), token_type_ids=ids * 0
        ).last_hidden_state
        mask = tokens.ids.mask()[:, :, None]
        scores = network.head((out * mask).sum(1) / mask.sum(1))
        loss = cross_entropy(scores, session.labels[rows])
        loss.backward()
        found["plain loss"] = loss.item()
        found["plain"] = {k: p.grad for k, p in network.named_parameters() if p.grad is not None}

    monkeypatch.setattr(session, "fit", one_step)
    defense.fine_tune(session)
    assert found["loss"] == pytest.approx(found["plain loss"], rel=1e-5)
    assert found["wire"].keys() == found["plain"].keys()
    assert any("lora_A" in name for name in found["wire"])
    bottom = [name for name in found["wire"] if "word_embeddings" in name]
    assert len(bottom) == (getattr(defense, "bottom", "") == "trainable")
    for name, gradient in found["plain"].items():
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(found["wire"][name], gradient, rtol=1e-3, atol=1e-6)


def test_an_example_is_pooled_over_its_own_tokens_whatever_stands_beside_it(tiny):
    session, _ = session_of(NoDefense())
    network = session.network().eval()
    texts = ["great", "the battery died and i do not like the screen at all"]

    def features(texts):
        tokens = tiny.encode(texts, None, 64)
        h = tokens.ids.with_values(network.embeddings(tokens.ids.values))
        return network.features(h, tokens.types)

    together = features(texts)
    for i, text in enumerate(texts):
        torch.testing.assert_close(together[i], features([text])[0])
    ids = torch.tensor(tiny.tokenizer(texts[0])["input_ids"])[None]
    plain = network.encoder(input_ids=ids).last_hidden_state.mean(1)
    torch.testing.assert_close(together[:1], plain)


@pytest.mark.parametrize("defense", [NoDefense(), SAP(eta=None), Frozen()])
def test_fine_tuning_lowers_the_loss_and_leaves_the_public_model_alone(defense):
    session, _ = session_of(defense, limit=200, train={"learning_rate": 5e-2, "epochs": 15})
    before = {k: v.clone() for k, v in session.backbone.model.state_dict().items()}
    defense.fine_tune(session)
    assert np.mean(session.loss[-3:]) < np.mean(session.loss[:3]) - 0.05
    assert all(torch.equal(v, before[k]) for k, v in session.backbone.model.state_dict().items())
