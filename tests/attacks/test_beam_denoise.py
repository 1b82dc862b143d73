"""beam-denoise: noise and text are estimated together, and nobody says what the noise was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import NOISY, leak_of, load_tiny, make, run
from torch.nn.functional import embedding

from leakboard.attacks.beam_denoise import BeamDenoise, Denoising
from leakboard.attacks.eia_nn import NearestNeighbour
from leakboard.bench.contracts.threat import Channel, Knows
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Auxiliary, Knowledge
from leakboard.bench.scoring import NEEDED, advantage_low
from leakboard.defenses.blackout import Blackout
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP

ATTACKS = (BeamDenoise(), NearestNeighbour())


def pairs(base, n, rng, words=60):
    """Texts in which each word decides the next one but for one in eight."""
    frame = base.encode(["good good good good good good good good"] * n, None, 16)
    real = frame.ids.with_values(~frame.special)
    ids = frame.ids.values.clone()
    for row in range(n):
        at = frame.ids.positions(torch.tensor([row]))[real.take(torch.tensor([row])).values]
        word, text = int(rng.integers(words)), []
        for _ in range(len(at)):
            text.append(10 + word)
            word = (7 * word + 3) % words if rng.random() < 7 / 8 else int(rng.integers(words))
        ids[at] = torch.tensor(text)
    return frame.with_ids(ids)


BASE = load_tiny("tiny-bert")
PUBLIC, PRIVATE = (pairs(BASE, n, np.random.default_rng(n)) for n in (1200, 150))
KNOWN = Knowledge(
    2, "cpu", base=BASE, auxiliary=Auxiliary(PUBLIC, np.zeros(len(PUBLIC), np.int64)),
    vocabulary=len(BASE.embeddings),
)  # fmt: skip


def sent(make, rounds=1):
    rng, n = np.random.default_rng(7), np.arange(len(PRIVATE))
    lengths = PRIVATE.lengths.numpy()
    return Transcript(
        tuple(
            Message(Channel.REPRESENTATIONS, "train", r, "customer", "vendor", 0, n, make(rng).numpy(), lengths)
            for r in range(rounds)
        )
    )  # fmt: skip


def snapped(rng, eta=NOISY):
    return SAP(eta=eta).simulate(BASE, PRIVATE, 0, rng).values


def gaussian(rng, width=2.5):
    words = embedding(PRIVATE.ids.values, BASE.embeddings)
    noise = torch.from_numpy(rng.standard_normal(words.shape)).to(words)
    return words + width * BASE.embeddings.std() * noise * ~PRIVATE.special[:, None]


def share(attack, seen, knowledge=KNOWN):
    (guess,) = attack.guess(seen, knowledge, np.random.default_rng(0))
    words = guess.values.reshape(len(PRIVATE.special), -1) == PRIVATE.ids.values.numpy()[:, None]
    return words.any(1)[~PRIVATE.special.numpy()].mean()


@pytest.mark.parametrize(
    ("noise", "gain"), [(snapped, 0.1), (gaussian, 0.5)], ids=["snapped", "gaussian"]
)
def test_context_reads_more_than_the_nearest_neighbour_with_either_kind_of_noise(noise, gain):
    ours, nearest = (share(attack, sent(noise)) for attack in ATTACKS)
    assert nearest < 0.8
    assert ours > nearest + gain


@pytest.mark.parametrize("eta", [150.0, 250.0])
def test_law_of_the_noise_is_estimated(eta):
    vectors = PRIVATE.ids.with_values(snapped(np.random.default_rng(1), eta))
    found = Denoising.of(BASE, KNOWN.auxiliary, [vectors])
    found.read(np.random.default_rng(0))
    real = ~PRIVATE.special
    stayed = float((found.words[:, 0] == PRIVATE.ids.values)[real].float().mean())
    words = torch.searchsorted(found.chain.words, PRIVATE.ids.values[real])
    chances = (found.law.weights[2] - found.law.log_norm).exp()[words]
    assert abs(float(chances.mean()) - stayed) < 0.07


def test_mechanism_is_not_known():
    assert Knows.MECHANISM not in BeamDenoise().needs
    (pairing,) = make(SAP(eta=NOISY), attacks=[BeamDenoise()]).cells[0].pairings
    assert not pairing.skip_reasons


def test_rounds_of_one_text_add_up():
    once, twice = (share(BeamDenoise(), sent(snapped, rounds)) for rounds in (1, 2))
    assert twice > once + 0.03


def test_without_noise_words_that_public_text_lacks_are_read():
    ids = PRIVATE.ids.values.clone()
    real = (~PRIVATE.special).nonzero()[:, 0]
    ids[real[50::700]] = torch.arange(900, 900 + len(real[50::700]))
    vectors = embedding(ids, BASE.embeddings)
    (guess,) = BeamDenoise().guess(sent(lambda rng: vectors), KNOWN, np.random.default_rng(0))
    assert guess.values[:, 0].tolist() == ids.tolist()


def test_cells_are_read_without_noise_and_not_in_blackout(tmp_path):
    open_cells = [SAP(eta=None), NoDefense()]
    *found, nothing = run(tmp_path, *open_cells, Blackout(), attacks=ATTACKS)
    for record in found:
        leak = leak_of(record, "beam-denoise")
        assert leak.success.value >= 0.99
        assert advantage_low(leak) >= NEEDED
    leak = leak_of(nothing, "beam-denoise")
    assert leak.success.low <= leak.success.chance


def test_same_seed_same_guess():
    seen = sent(snapped)
    first, second = (
        BeamDenoise().guess(seen, KNOWN, np.random.default_rng(4))[0].values for _ in range(2)
    )
    assert first.tolist() == second.tolist()
