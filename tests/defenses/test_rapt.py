"""RAPT: what crosses, what the vendor trains, and that it learns to undo noise on plain tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import NOISY, fine_tuned, first_scene, leak_of, load_tiny, run, session_of

from leakboard.attacks.clear_label import ClearLabel
from leakboard.attacks.spectral import Spectral
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.session import Session
from leakboard.defenses import rapt
from leakboard.defenses.rapt import RAPT, Plain, Received, Vendor, joined
from leakboard.defenses.sap import SAP

SMALL = {"plain": 6, "length": 4, "width": 8, "targets": 50}


def plain_of(session: Session, split: str = "train") -> np.ndarray:
    """[n, m] the plain tokens that crossed."""
    sent = session.wire.transcript().collect(Channel.TOKENS, split, part=1)
    return sent.values.reshape(len(sent.rows), -1)


class Watched:
    """Notes what a vendor's model is given and what it makes of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.received: list[Received] = []
        self.vendor: list[Vendor] = []
        self.losses: list[float] = []
        forward, entropy = Vendor.forward, rapt.cross_entropy

        def watched(vendor: Vendor, received: Received):
            self.received.append(received)
            self.vendor.append(vendor)
            return forward(vendor, received)

        def heard(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            loss = entropy(scores, target)
            if scores.shape[1] > 3:
                self.losses.append(loss.item())
            return loss

        monkeypatch.setattr(Vendor, "forward", watched)
        monkeypatch.setattr(rapt, "cross_entropy", heard)


@pytest.fixture
def watched(monkeypatch) -> Watched:
    return Watched(monkeypatch)


def test_text_and_plain_tokens_are_privatised_and_sent_once_and_labels_as_they_are():
    defense = RAPT(eta=NOISY, **SMALL)
    session, inputs, tuned = fine_tuned(defense, limit=96, train={"epochs": 3})
    tuned.predict(inputs.tokens["dev"], "dev")
    seen = session.wire.transcript()
    assert seen.rounds(Channel.TOKENS) == [0]
    labels = seen.collect(Channel.LABELS)
    assert labels.values.tolist() == session.labels[labels.rows].tolist()
    for split in ("train", "dev"):
        tokens, sent = inputs.tokens[split], seen.collect(Channel.TOKENS, split)
        special, same = tokens.special.numpy(), sent.values == tokens.ids.values.numpy()
        assert sent.lengths.tolist() == tokens.lengths.tolist()
        assert same[special].all()
        assert 0.05 < same[~special].mean() < 0.95
        k = plain_of(session, split)
        assert k.shape == (len(tokens), 6)
        # Noise of its own for each example: k comes out differently, and yet as itself here and there.
        assert len(np.unique(k, axis=0)) > 0.9 * len(k)
        most = [np.bincount(column).argmax() for column in k.T]
        assert 0.05 < (k == most).mean() < 0.95


def test_without_noise_the_text_and_k_are_sent_as_they_are():
    session, inputs, _ = fine_tuned(RAPT(eta=None, **SMALL))
    sent = session.wire.transcript().collect(Channel.TOKENS)
    assert sent.values.tolist() == inputs.tokens["train"].ids.values.tolist()
    assert len(np.unique(plain_of(session), axis=0)) == 1


def test_the_noise_is_that_of_sap_at_the_embedding_cut():
    base, rng = load_tiny("tiny-bert"), np.random.default_rng
    tokens = first_scene(SAP()).inputs.tokens["train"]
    ours, theirs = (d.simulate(base, tokens, 0, rng(3)) for d in (RAPT(eta=20), SAP(eta=20)))
    assert torch.equal(ours.values, theirs.values)
    assert not torch.equal(ours.values, base.embeddings[tokens.ids.values])


def test_plain_tokens_stand_behind_the_first_token_and_their_outputs_alone_are_rebuilt(watched):
    session, inputs, tuned = fine_tuned(RAPT(eta=None, **SMALL))
    tuned.predict(inputs.tokens["dev"], "dev")
    k = plain_of(session)[0].tolist()
    first = session.train.ids.values[0].item()
    for received in (watched.received[0], watched.received[-1]):
        assert (received.plain.padded().sum(1) == 6).all()
        for ids, plain in zip(received.ids.padded(), received.plain.padded(), strict=True):
            assert ids[0] == first
            assert ids[1:7].tolist() == k == ids[plain.bool()].tolist()
    rows = torch.tensor([2, 0])
    one = watched.received[0]
    again = one.take(rows)
    assert torch.equal(
        again.ids.values, torch.cat([one.ids.take(rows[:1]).values, one.ids.take(rows[1:]).values])
    )
    vendor = watched.vendor[0].eval()
    out = vendor.prompted(one.ids, one.types)
    plain, features = vendor(one)
    assert torch.equal(plain, out[one.plain.values])
    for row in range(len(one.lengths)):
        at = torch.tensor([row])
        inside, own = one.plain.take(at).values, out[one.ids.positions(at)]
        torch.testing.assert_close(features[row], own[~inside].mean(0))


def test_texts_without_a_first_special_token_have_plain_tokens_in_front():
    text = Ragged(torch.tensor([7, 8, 9, 5, 6]), torch.tensor([3, 2]))
    plain = Ragged(torch.tensor([1, 2, 3, 4]), torch.tensor([2, 2]))
    types = torch.tensor([0, 1, 1, 0, 0])
    found = joined(plain, text, types, torch.tensor([1, 0]))
    assert found.ids.values.tolist() == [7, 1, 2, 8, 9, 3, 4, 5, 6]
    assert found.types.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert found.plain.values.tolist() == [
        False,
        True,
        True,
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert found.lengths.tolist() == [5, 4]


def test_reconstruction_loss_falls_below_guessing(watched):
    train = {"epochs": 8, "learning_rate": 1e-2, "batch_size": 8}
    session, _ = session_of(RAPT(eta=NOISY, **SMALL), limit=96, train=train)
    RAPT(eta=NOISY, **SMALL).fine_tune(session)
    assert len(watched.losses) == 8 * 12
    assert watched.losses[0] > 0.8 * np.log(50)
    assert np.mean(watched.losses[-12:]) < 0.5 * np.mean(watched.losses[:12])


def test_the_reconstruction_head_is_linear_and_of_the_widths_it_says(watched):
    fine_tuned(RAPT(eta=None, **SMALL))
    head = watched.vendor[0]
    x, y = torch.randn(2, 5, 32).double()
    head.rebuild.double()
    sums = head.rebuild(2 * x - 3 * y)
    torch.testing.assert_close(sums, 2 * head.rebuild(x) - 3 * head.rebuild(y))
    assert sums.shape == (5, 50)
    assert torch.linalg.matrix_rank(torch.cat(list(head.rebuild.parameters())[1:])) == 8


@pytest.mark.parametrize("kind", ["prefix", "prompt"])
def test_what_stands_in_front_and_the_heads_are_trained_and_nothing_else(watched, kind):
    session, _, _ = fine_tuned(RAPT(kind=kind, eta=None, **SMALL), train={"learning_rate": 1e-2})
    vendor, base = watched.vendor[0], session.backbone
    encoder, public = vendor.prompted.network.encoder, base.model.state_dict()
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, public[name]), name
    d, blocks = 32, 2
    front = 4 * d if kind == "prompt" else 2 * blocks * 4 * d
    head = session.classes * (d + 1)
    assert session.trained_parameters == front + head + 8 * (d + 50)
    torch.manual_seed(session.seeds.initialisation)
    assert (vendor.prompted.front.grad.abs() > 0).any()


def test_its_own_rate_takes_the_place_of_that_of_training_for_all_that_is_trained(watched):
    ended = []
    for rate in (None, 1e-2):
        watched.vendor.clear()
        fine_tuned(RAPT(eta=None, rate=rate, **SMALL), train={"learning_rate": 1e-9})
        ended.append([watched.vendor[0].prompted.front, *watched.vendor[0].heads()])
    for still, moved in zip(*ended, strict=True):
        assert float((still - moved).abs().max().detach()) > 1e-4


def test_without_reconstruction_nothing_but_the_text_is_sent_and_no_head_is_trained(watched):
    session, _, _ = fine_tuned(RAPT(eta=None, reconstruction=False, **SMALL))
    seen = session.wire.transcript()
    assert {m.part for m in seen.messages if m.channel == Channel.TOKENS} == {0}
    assert not watched.losses
    assert watched.vendor[0].rebuild is None
    assert not any(received.plain.values.any() for received in watched.received)


def plain_tokens(n: int = 200, seed: int = 0, **fields) -> Plain:
    return RAPT(**SMALL | fields)._plain_tokens(load_tiny("tiny-bert"), n, seed)


def test_plain_tokens_are_words_of_a_vocabulary_of_their_own_that_holds_them():
    base = load_tiny("tiny-bert")
    public = plain_tokens(sequences=3)
    assert public.sequences.shape == (3, 6)
    assert len(public.vocabulary) == len(set(public.vocabulary.tolist())) == 50
    assert not set(public.vocabulary.tolist()) & set(base.special_ids)
    assert set(public.which.tolist()) == {0, 1, 2}
    assert torch.equal(public.vocabulary[public.targets()], public.of_rows())
    assert len(plain_tokens(targets=10**6).vocabulary) == len(base.embeddings) - len(
        base.special_ids
    )
    assert set(plain_tokens(targets=1).sequences.flatten().tolist()) == {
        int(plain_tokens(targets=1).vocabulary)
    }


def test_k_depends_on_its_draw_and_the_public_seed_and_may_be_given():
    draws = [plain_tokens(contents=c, seed=s).sequences for c, s in ((0, 0), (1, 0), (0, 1))]
    assert torch.equal(draws[0], plain_tokens().sequences)
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    base = load_tiny("tiny-bert")
    food, good = base.tokenizer("food good", add_special_tokens=False)["input_ids"]
    said = plain_tokens(says="food good")
    assert said.sequences.tolist() == [[food, good] * 3]
    assert {food, good} <= set(said.vocabulary.tolist())
    assert len(said.vocabulary) == 50


MISTAKES = {
    "k longer than an example": ({"plain": 129}, "train.max_length = 128"),
    "a target vocabulary without k": ({"says": "the food was good", "targets": 3}, "got 3"),
    "k of no token": ({"says": " "}, "has no token"),
    "a prompt longer than the model": (
        {"kind": "prompt", "length": 250},
        "the model has room for 6 tokens after a prompt of 250",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_lengths_and_vocabularies_that_do_not_fit_are_named(mistake):
    fields, message = MISTAKES[mistake]
    with pytest.raises(LeakboardError, match=message):
        fine_tuned(RAPT(**SMALL | fields))


@pytest.mark.parametrize(
    "fields", [{"eta": 0}, {"eta": -1}, {"plain": 0}, {"targets": 0}, {"width": 0}, {"rate": 0}]
)
def test_settings_out_of_range_are_refused(fields):
    with pytest.raises(ValueError, match="greater than"):
        RAPT(**fields)


def test_labels_are_read_where_they_are_sent_and_gradients_never_reach_the_customer(tmp_path):
    (record,) = run(tmp_path, RAPT(eta=NOISY, **SMALL), attacks=(ClearLabel(), Spectral()))
    assert leak_of(record, "clear-label", goal="label").success.value == 1
    spectral = leak_of(record, "spectral", "", "label")
    assert (spectral.status, spectral.success) == ("skipped", None)


def test_its_twin_is_itself_without_noise_and_the_claim_is_about_tokens():
    defense = RAPT(eta=60, plain=7)
    (twin,) = defense.twins("classification")
    assert twin == RAPT(eta=None, plain=7)
    assert twin.undefended
    assert twin.twins("classification") == ()
    assert twin.claim() is None
    assert defense.claim().parameters == {"eta": 60}
    assert "labels" in defense.claim().covers
