"""Bayes' rule against text-to-text mechanisms: never behind the nearest neighbour, and ahead under strong noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import NOISY, first_scene, leak_of, run

from leakboard.attacks import eia_bayes
from leakboard.attacks.eia_bayes import BayesInversion, parts, right
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.attacking import inversion, posterior_bound
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.running.grants import knowledge_for
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.custext_plus import CusTextPlus
from leakboard.defenses.none import NoDefense
from leakboard.defenses.rapt import RAPT
from leakboard.defenses.santext_plus import SanTextPlus
from leakboard.defenses.sap import SAP

ATTACKS = (BayesInversion(), NearestNeighbour())
SMALL = {"plain": 4, "length": 2, "width": 4, "targets": 20, "reconstruction": False}


def test_it_reads_all_without_noise_and_nothing_in_blackout(tmp_path):
    open_cells = [SAP(eta=None), RAPT(eta=None, **SMALL), NoDefense()]
    *found, nothing = run(tmp_path, *open_cells, Blackout(), attacks=ATTACKS)
    for record in found:
        assert leak_of(record, "eia-bayes").success.value > 0.99
        assert leak_of(record, "eia-bayes").bound is None
    leak = leak_of(nothing, "eia-bayes")
    assert leak.success.low <= leak.success.chance


def transcript_of(scene, rounds: int = 1) -> Transcript:
    """What the vendor would receive of the recorded examples, as vectors."""
    rows = scene.inputs.recorded["train"]
    tokens = scene.inputs.tokens["train"].take(torch.from_numpy(rows))
    sent = []
    for r in range(rounds):
        drawn = np.random.default_rng(100 + r)
        vectors = scene.planned.defense.simulate(scene.backbone, tokens, 0, drawn)
        where = (Channel.REPRESENTATIONS, "train", r, "customer", "vendor", 0)
        sent.append(Message(*where, rows, vectors.values.numpy(), tokens.lengths.numpy()))
    return Transcript(tuple(sent))


def read_by(attack, scene, seen) -> float:
    """The share of tokens that an attack reads."""
    (guess,) = attack.guess(
        seen, knowledge_for(scene.planned.pairings[0], scene), np.random.default_rng(0)
    )
    tokens = scene.inputs.tokens["train"].take(torch.from_numpy(guess.rows))
    return float(right(torch.from_numpy(np.asarray(guess.values)), tokens).mean())


@pytest.mark.parametrize("eta", [NOISY, 120.0, 60.0])
def test_it_is_as_good_as_the_nearest_neighbour_and_better_under_strong_noise(eta):
    scene = first_scene(SAP(eta=eta), attacks=ATTACKS, limit=300)
    seen = transcript_of(scene)
    ours, theirs = (read_by(attack, scene, seen) for attack in ATTACKS)
    assert ours >= theirs - 0.01
    if eta == 60:
        assert ours > theirs + 0.02


@pytest.mark.parametrize(
    "defense", [CusTextPlus(epsilon=1.0), SanTextPlus(epsilon=1.0, sensitive=0.5, p=0.9)], ids=str
)
def test_of_a_mechanism_that_states_its_chances_it_reads_more_than_by_fitting_them(
    defense, monkeypatch
):
    scene = first_scene(defense, attacks=ATTACKS, limit=300)
    seen = transcript_of(scene)
    stated, nearest = (read_by(attack, scene, seen) for attack in ATTACKS)
    scene.inputs.public["own"].learned._known.clear()
    monkeypatch.setattr(eia_bayes, "Substituting", Blackout)  # as if it stated nothing
    fitted = read_by(BayesInversion(), scene, seen)
    assert stated > fitted + 0.02
    assert stated > nearest + 0.05


def test_rounds_of_one_text_add_up_and_say_more_than_the_nearest_words_of_all_rounds():
    scene = first_scene(SAP(eta=60.0), attacks=ATTACKS, limit=300)
    seen, first = transcript_of(scene, 5), transcript_of(scene)
    scene.inputs.public["own"].learned._known.clear()
    once, ours = (read_by(BayesInversion(), scene, each) for each in (first, seen))
    assert ours > once + 0.02
    assert ours > read_by(NearestNeighbour(), scene, seen) + 0.02


def test_sanitised_ids_that_are_sent_again_count_once():
    scene = first_scene(CusTextPlus(epsilon=1.0), attacks=ATTACKS, limit=48)
    rows = scene.inputs.recorded["train"]
    tokens = scene.inputs.tokens["train"].take(torch.from_numpy(rows))
    where = [(Channel.TOKENS, "train", r, "customer", "vendor", 0) for r in range(3)]
    same = [Message(*w, rows, tokens.ids.values.numpy(), tokens.lengths.numpy()) for w in where]
    knowledge = knowledge_for(scene.planned.pairings[0], scene)
    once, thrice = (
        BayesInversion().guess(Transcript(tuple(m)), knowledge, np.random.default_rng(0))[0].values
        for m in (same[:1], same)
    )
    assert thrice.tolist() == once.tolist()


def test_behind_the_nearest_neighbour_on_public_text_it_guesses_what_that_does(monkeypatch):
    monkeypatch.setattr(eia_bayes, "SURE", 1e9)
    scene = first_scene(SAP(eta=60.0), attacks=ATTACKS, limit=100)
    seen = transcript_of(scene)
    knowledge = knowledge_for(scene.planned.pairings[0], scene)
    ours, theirs = (a.guess(seen, knowledge, np.random.default_rng(0))[0].values for a in ATTACKS)
    assert (np.asarray(ours) == np.asarray(theirs)).all()


def test_the_bound_of_the_mechanism_stands_beside_the_success(tmp_path):
    scene = first_scene(SAP(eta=2.0), attacks=ATTACKS)
    (record,) = run(tmp_path, SAP(eta=2.0), attacks=ATTACKS)
    counts = inversion.token_counts(
        scene.inputs.public["own"].tokens, len(scene.backbone.embeddings)
    )
    leak = leak_of(record, "eia-bayes")
    # A part of public text is kept for fitting, so that frequencies are a little others.
    whole = posterior_bound(scene.backbone.embeddings, counts, 2.0)
    assert leak.bound == pytest.approx(whole, rel=0.05)
    assert counts.max() / counts.sum() < leak.bound < 1
    assert leak.success.low <= leak.bound
    assert leak_of(record, "eia-nn").bound is None


def test_several_rounds_loosen_the_bound():
    scene = first_scene(SAP(eta=2.0), attacks=ATTACKS)
    knowledge = knowledge_for(scene.planned.pairings[0], scene)
    bounds = [
        BayesInversion()
        .guess(transcript_of(scene, n), knowledge, np.random.default_rng(0))[0]
        .bound
        for n in (1, 3)
    ]
    counts = inversion.token_counts(knowledge.auxiliary.tokens, len(scene.backbone.embeddings))
    assert bounds[0] < bounds[1]
    assert bounds[1] == pytest.approx(
        posterior_bound(scene.backbone.embeddings, counts, 6.0, 3), rel=0.05
    )


def test_texts_that_fit_and_texts_that_try_are_apart_and_as_many_as_are_needed(monkeypatch):
    # Forty sentences of twelve words between two special tokens; of each a part of nine and one of two words.
    texts = [[900 + 20 * i + n for n in range(12)] for i in range(40)]
    texts += [text[1:10] for text in texts] + [text[4:6] for text in texts]
    texts = [[101, *text, 102] for text in texts]
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.tensor([word for text in texts for word in text])
    tokens = Tokens(Ragged(ids, lengths), torch.zeros(len(ids)), (ids == 101) | (ids == 102))
    monkeypatch.setattr(eia_bayes, "PAIRS", 40)
    monkeypatch.setattr(eia_bayes, "HELD_OUT", 60)
    first, second, rest = parts(tokens, np.random.default_rng(0))
    for part, most in ((first, 40), (second, 60)):
        assert most - 14 <= int(lengths[part].sum()) <= most + 14
    assert not {*first} & {*second}
    # No sentence is there in part and elsewhere in part.
    assert not {at % 40 for at in [*first, *second]} & {at % 40 for at in rest}
    assert len(rest) > 60
    few = parts(tokens.take(torch.arange(3)), np.random.default_rng(0))
    assert [len(part) for part in few] == [1, 1, 1]
