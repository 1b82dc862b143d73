"""The text that a language model is tuned on, from the gradient at its output layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cells import first_scene, leak_of, load_tiny, run
from torch.nn.functional import cross_entropy

from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.attacks.token_gradient import TokenGradient, cosines, explained
from leakboard.bench.backbones import labelling
from leakboard.bench.backbones.labelling import NO_LABEL, next_tokens
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.contracts.transcript import Guess, Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.bench.scoring.guesses import BadGuess, Truth, score
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

TALK = {
    "task": "dialogues",
    "model": "tiny-gpt2",
    "limit": 24,
    "train": {"epochs": 1, "batch_size": 8},
    "attacks": (TokenGradient(), NearestNeighbour()),
}
ETAS = (None, 400.0, 200.0, 50.0)


def test_every_token_is_read_at_every_noise_wherever_a_public_output_layer_stands(tmp_path):
    ends = {}
    for head in ("vendor", "customer"):
        records = run(tmp_path / head, *(SAP(eta=eta, head=head) for eta in ETAS), **TALK)
        for record in records:
            for goal in ("label", "inversion"):
                leak = leak_of(record, "token-gradient", goal=goal)
                assert leak.success.value >= 0.99
                assert leak.channel == {"vendor": "logit-gradients", "customer": "gradients"}[head]
                assert 0 < leak.success.chance < 0.2
            assert leak_of(record, "token-gradient", goal="label").metric == "label token accuracy"
        ends[head] = [leak_of(record, "eia-nn").success.value for record in records]
    assert ends["vendor"] == ends["customer"]
    assert ends["vendor"][0] == 1.0
    assert ends["vendor"] == sorted(ends["vendor"], reverse=True)
    assert ends["vendor"][-1] < 0.2


def test_noise_tells_nothing_and_what_sends_no_gradient_is_not_tried(tmp_path):
    dark, frozen, plain = run(tmp_path, Blackout(), Frozen(), NoDefense(), **TALK)
    for goal in ("label", "inversion"):
        found = leak_of(dark, "token-gradient", goal=goal).success
        assert found.low <= found.chance
    assert (
        "reads only gradients or logit-gradients"
        in leak_of(frozen, "token-gradient", view="", goal="label").reason
    )
    # A model that is trained by its owner sends none either.
    assert leak_of(plain, "token-gradient", view="", goal="label").status == "skipped"
    (record,) = run(tmp_path / "classes", SAP(), attacks=(TokenGradient(),))
    assert {leak.reason for leak in record.leaks} == {
        "the labels of task reviews are classes, not tokens"
    }


def sent(head, h, ids, scale=1.0):
    """What a customer with the output layer sends of one text, and what came down for it."""
    h = torch.tensor(h, requires_grad=True)
    labels = torch.tensor([*ids[1:], NO_LABEL])
    loss = cross_entropy(h @ head.T, labels, reduction="sum") * scale
    (g,) = torch.autograd.grad(loss, h)
    size = np.array([len(ids)])
    one = Message(
        *(Channel.ACTIVATIONS, "train", 0, "vendor", "vendor", 0, np.array([0])),
        h.detach().numpy(),
        size,
    )
    other = replace(one, channel=Channel.GRADIENTS, sender="customer", values=g.numpy())
    return Transcript((one, other))


def test_of_the_gradient_of_the_logits_the_one_negative_entry_is_the_label():
    values = np.array([[0.2, -0.5, 0.3], [-1e-9, 1e-9, 0], [0, 0, 0], [0.1, 0.1, -0.2]], np.float32)
    one = Message(
        *(Channel.LOGIT_GRADIENTS, "train", 0, "customer", "vendor", 0, np.array([3, 7])),
        *(values, np.array([3, 1])),
    )
    knowledge = Knowledge(0, "cpu", base=load_tiny("tiny-gpt2"))
    label, text = TokenGradient().guess(Transcript((one,)), knowledge, np.random.default_rng(0))
    assert (label.values[[0, 1, 3]].tolist(), label.rows.tolist()) == ([1, 0, 2], [3, 7])
    assert text.values[1:3].tolist() == [1, 0]


@pytest.mark.parametrize("chunk", [2**27, 1])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_how_many_labels_a_batch_has_need_not_be_known(chunk, scale, monkeypatch):
    monkeypatch.setattr(labelling, "CHUNK", chunk)
    base = load_tiny("tiny-gpt2")
    rng = np.random.default_rng(0)
    ids = rng.integers(len(base.embeddings), size=30).tolist()
    h = rng.standard_normal((30, base.width), dtype=np.float32)
    seen = sent(base.output_layer(), h, ids, scale)
    label, text = TokenGradient().guess(seen, Knowledge(0, "cpu", base=base), rng)
    assert label.values[:-1].tolist() == ids[1:]
    assert text.values[1:].tolist() == ids[1:]


def test_of_prompts_with_answers_the_answers_are_labels_and_the_prompts_the_input(
    tmp_path, monkeypatch
):
    # What the tuned model would answer is not attacked, and takes most of the time of a cell.
    generate = "leakboard.bench.running.cells.generate_answers"
    monkeypatch.setattr(generate, lambda tuned, tokens, *_: ([""] * len(tokens), tokens))
    tuned = SAP(eta=None), SAP(eta=50.0), SAP(eta=50.0, head="customer")
    asking = TALK | {"task": "replies", "limit": 12}
    records = run(tmp_path, *tuned, **asking)
    tokens = first_scene(SAP(), **asking).inputs.tokens["train"]
    told = int((tokens.types[~tokens.special] == 1).sum())
    asked = int((tokens.types[~tokens.special] == 0).sum())
    for record in records:
        label = leak_of(record, "token-gradient", goal="label")
        assert label.success.value >= 0.99
        assert label.units == told
        # Nothing is learnt within a prompt, so that no gradient names its tokens.
        other = leak_of(record, "token-gradient")
        assert other.units == leak_of(record, "eia-nn").units == asked
        assert other.success.value < 0.1
    assert leak_of(records[0], "eia-nn").success.value == 1
    assert leak_of(records[1], "eia-nn").success.value < 0.2


def test_rows_of_any_length_are_told_apart_by_directions_from_what_the_model_predicts():
    generator = torch.Generator().manual_seed(0)
    head, h = torch.randn(60, 8, generator=generator), torch.randn(40, 8, generator=generator)
    head = (head * torch.logspace(-0.7, 0.5, 60)[:, None]).double()
    predicted = (h.double() @ head.T).softmax(1)
    # Far from even, so that what it predicts is far from the mean of all rows.
    assert predicted.max(1).values.mean() > 0.5
    labels = (predicted.argmax(1) + 1 + torch.arange(40)) % 60
    g = predicted @ head - head[labels]
    cosine, found = explained(1e-3 * g, h.double(), head)
    assert found.tolist() == labels.tolist()
    assert cosine.tolist() == pytest.approx([1.0] * 40)


def test_special_tokens_and_prompts_do_not_count_and_every_token_is_spoken_about():
    scene = first_scene(SAP(), **TALK | {"limit": 4})
    truth = Truth(scene.inputs.tokens, scene.inputs.task.splits, scene.inputs.recorded)
    tokens, rows = scene.inputs.tokens["train"], scene.inputs.recorded["train"]
    labels = next_tokens(tokens).numpy()
    right = Guess(Goal.LABEL, None, "train", rows, labels, tokens.lengths.numpy())
    found = score(right, truth)
    assert found["success"].value == 1
    assert found["units"] == int((~tokens.special).sum()) == int((tokens.lengths - 1).sum())
    ends = tokens.lengths.cumsum(0) - 1
    special = tokens.special.clone()
    special[ends] = True
    ended = replace(truth, tokens={"train": replace(tokens, special=special)})
    assert score(right, ended)["units"] == found["units"] - len(tokens)
    off = replace(right, values=np.roll(labels, 1))
    assert score(off, truth)["success"].value < 0.3
    with pytest.raises(BadGuess, match="every token of each of its examples"):
        score(replace(right, lengths=right.lengths + 1), truth)
    with pytest.raises(BadGuess, match="has shape"):
        score(replace(right, values=labels[:-1]), truth)


def test_a_certain_prediction_has_no_direction_on_its_own_row():
    torch.manual_seed(0)
    head = torch.randn(50, 16)
    h = 1000 * head[:5]  # each predicts its own row alone
    found = cosines(torch.randn(5, 16), h, head)
    assert found.abs().max() <= 1 + 1e-5
    assert found[torch.arange(5), torch.arange(5)].abs().max() == 0
