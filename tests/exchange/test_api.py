"""The API answers as the plain network would, counts what it is sent, and hides nothing it is not asked to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import fine_tuned, run, session_of

from leakboard.bench.backbones import random_state
from leakboard.bench.contracts import Channel, Envelope
from leakboard.bench.exchange.api import Api
from leakboard.bench.exchange.server import Call, Server
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense


@pytest.fixture
def asked():
    """A session, its client, and a call about one batch with an adapter that has an effect."""
    session, _ = session_of(NoDefense())
    session.wire.at(0, 0)
    client = Api(session)
    adapter = client.adapter()
    torch.manual_seed(3)
    for parameter in adapter.values():
        torch.nn.init.normal_(parameter, std=0.2)
    rows = torch.arange(12)
    return session, client, Call(session.train.take(rows), rows, adapter)


def plain(client, call):
    """The activations by the network itself, with the adapter put into it."""
    network = client.network.eval()
    with torch.no_grad():
        for name, value in call.adapter.items():
            network.get_parameter(name).copy_(value)
    vectors = network.embeddings(call.tokens.ids.values)
    return network.features(call.tokens.ids.with_values(vectors), call.tokens.types)


def test_forward_and_backward_are_those_of_the_plain_network(asked):
    _, client, call = asked
    h = client.forward(call)
    gradient = torch.randn(h.shape, generator=torch.Generator().manual_seed(0))
    found = client.backward(call, [gradient])
    expected = plain(client, call)
    torch.testing.assert_close(h, expected)
    expected.backward(gradient)
    for name, value in found.items():
        torch.testing.assert_close(value, client.network.get_parameter(name).grad)


def test_an_answer_depends_on_nothing_but_the_call(asked):
    session, client, call = asked
    call = replace(call, dropout=random_state("cpu"))
    other = replace(call, adapter={name: v + 0.1 for name, v in call.adapter.items()})
    server = Server(client.network, session.autocast(), keep=1)
    gradient = torch.ones(12, session.backbone.width)
    first = server.forward(call)
    remembered = server.backward(call, gradient)
    server.forward(other)  # pushes the first pass out of memory
    torch.rand(5)
    before = random_state("cpu")
    again = server.backward(call, gradient)
    assert torch.equal(before, random_state("cpu"))
    assert all(torch.equal(remembered[name], again[name]) for name in remembered)
    assert torch.equal(server.forward(call), first)
    assert not torch.equal(server.forward(replace(call, dropout=None)), first)


def test_an_adapter_that_an_optimiser_changed_in_place_is_another_adapter(asked):
    session, client, call = asked
    server = Server(client.network, session.autocast())
    gradient = torch.ones(12, session.backbone.width)
    server.forward(call)
    with torch.no_grad():
        for value in call.adapter.values():
            value.mul_(2)
    copy = {name: value.detach().clone() for name, value in call.adapter.items()}
    found = server.backward(call, gradient)
    expected = server.backward(replace(call, adapter=copy), gradient)
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_adapters_of_one_step_get_the_same_dropout(asked):
    _, client, call = asked
    copy = {name: value.clone() for name, value in call.adapter.items()}
    call = replace(call, dropout=client.dropout())
    one = client.forward(call)
    two = client.forward(replace(call, adapter=copy, where=Envelope(part=1)))
    assert torch.equal(one, two)
    assert not torch.equal(one, client.forward(replace(call, dropout=client.dropout())))


def test_several_adapters_do_not_disturb_each_other():
    session, _ = session_of(NoDefense())
    client = Api(session, keep=2)
    rows = torch.arange(8)
    calls = [Call(session.train.take(rows), rows, client.adapter(n)) for n in (0, 1)]
    for call in calls:
        for parameter in call.adapter.values():
            torch.nn.init.normal_(parameter, std=0.2)
    gradient = torch.ones(8, session.backbone.width)
    alone = []
    for call in calls:
        client.forward(call)
        alone.append(client.backward(call, [gradient]))
    for call in calls:
        client.forward(call)
    for call, expected in zip(calls, alone, strict=True):
        found = client.backward(call, [gradient])
        assert all(torch.equal(found[name], expected[name]) for name in found)


def test_fresh_adapters_have_no_effect_and_different_draws():
    session, _ = session_of(NoDefense())
    client = Api(session)
    zero, one = client.adapter(0), client.adapter(1)
    assert all(torch.equal(v, client.adapter(1)[k]) for k, v in one.items())
    for name in zero:
        if "lora_B" in name:
            assert zero[name].abs().max() == one[name].abs().max() == 0
        else:
            assert not torch.equal(zero[name], one[name])
            spread = [float(adapter[name].detach().std()) for adapter in (zero, one)]
            assert spread[0] == pytest.approx(spread[1], rel=0.2)


def test_answers_to_several_gradients_are_weighted_and_once_is_the_same(asked):
    _, client, call = asked
    h = client.forward(call)
    parts = [torch.randn(h.shape), torch.randn(h.shape)]
    whole = client.backward(call, [2 * parts[0] - 3 * parts[1]])
    each = client.backward(call, parts, [2.0, -3.0])
    once = client.backward(call, parts, [2.0, -3.0], once=True)
    for name, value in whole.items():
        torch.testing.assert_close(each[name], value, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(once[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("once", [False, True])
def test_every_call_carries_input_adapter_and_gradient(asked, once):
    session, client, call = asked
    session.wire.bytes_up = session.wire.bytes_down = 0
    h = client.forward(call)
    x = 8 * len(call.tokens.ids.values) + 4 * len(call.rows)
    theta = 4 * sum(value.numel() for value in call.adapter.values())
    assert session.wire.bytes_up == x + theta
    assert session.wire.bytes_down == 4 * h.numel()
    client.backward(call, [h.detach()] * 3, [1.0] * 3, once=once)
    assert session.wire.bytes_up == x + theta + 3 * (x + theta + 4 * h.numel())
    assert session.wire.bytes_down == 4 * h.numel() + 3 * theta


def test_calls_and_the_customers_seconds_are_on_the_record(tmp_path):
    none, frozen = run(tmp_path, NoDefense(), Frozen(), limit=40, train={"epochs": 2})
    assert none.cost.calls == 2 * 2 * 3  # a forward and a backward, 3 batches of 16, 2 epochs
    assert 0 < none.cost.client_seconds < none.cost.train_seconds
    assert frozen.cost.calls is None


def test_windows_hold_every_row_that_was_sent_in_them():
    session, _, _ = fine_tuned(NoDefense(), limit=96, train={"epochs": 2})
    seen = session.wire.transcript()
    for channel in (Channel.ACTIVATIONS, Channel.GRADIENTS, Channel.TOKENS):
        moments = seen.moments(channel)
        assert len(moments) == 12
        rows = [len(seen.collect(channel, round=None, moment=m).rows) for m in moments]
        assert sum(rows) == 2 * 96
    steps = sorted({m.step for m in seen.messages if m.moment is not None})
    assert steps == list(range(12))


def test_the_adapter_that_is_recorded_is_the_one_that_was_sent():
    session, _, _ = fine_tuned(NoDefense(), limit=32, train={"epochs": 1})
    sent = [m for m in session.wire.transcript().messages if m.channel == Channel.PARAMETERS]
    assert [m.step for m in sent] == [0, 1]
    one = Api(session).adapter()
    first = np.concatenate([value.detach().numpy().ravel() for value in one.values()])
    assert np.array_equal(sent[0].values, first)
    assert not np.array_equal(sent[1].values, first)
