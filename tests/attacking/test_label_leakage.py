"""Label attacks: what they find, and what they survive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from label_attacks import looks_of, planted, sent, success

from leakboard.attacks.kmeans import Clusters
from leakboard.attacks.logreg import LogReg
from leakboard.attacks.norm import Norm
from leakboard.attacks.spectral import Spectral
from leakboard.attacks.xgboost import XGBoost
from leakboard.bench.attacking.label_leakage import SupervisedLabelAttack, matrices, principal
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.scoring.moments import scored

BLIND = [Spectral(), Norm(), Clusters()]
TOLD = [LogReg(), XGBoost()]
EVERY = [*BLIND, *TOLD]


def named(attack):
    return attack.name


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("attack", EVERY, ids=named)
def test_attack_finds_the_structure_that_it_is_made_for(attack, classes):
    x, y = planted("length" if attack.name == "norm" else "place", classes=classes)
    worst, _ = scored(looks_of(attack, Transcript((sent(x),)), y, classes), classes)
    assert worst["success"].value > (0.9 if classes == 2 or attack.measure != "auc" else 0.7)
    assert worst["success"].low > worst["success"].chance


@pytest.mark.parametrize("attack", EVERY, ids=named)
def test_attack_finds_nothing_in_noise(attack):
    x = np.random.default_rng(1).standard_normal((240, 12))
    y = np.arange(240) % 2
    found = success(attack, Transcript((sent(x),)), y)
    assert found.low <= found.chance


@pytest.mark.parametrize("attack", TOLD, ids=named)
def test_attack_that_is_told_labels_is_never_told_those_of_the_rows_it_guesses(attack):
    x, y = planted("place", n=60)

    class Spy(SupervisedLabelAttack):
        """Notes what it was given."""

        name = "spy"
        folds = attack.folds

        def learn(self, x, y, unknown, rng):
            given.append((x, y, unknown))
            return np.zeros(len(unknown), np.int64)

    given = []
    looks_of(Spy(), Transcript((sent(x),)), y)
    assert len(given) == attack.folds
    for known, told, unknown in given:
        assert len(known) == len(told) == 60 - len(unknown)
        assert not (known[:, None] == unknown[None]).all(2).any()
    assert sum(len(unknown) for *_, unknown in given) == 60


def test_what_is_learnt_of_the_untrained_model_is_learnt_once_of_the_same_rows_and_labels():
    x, y = planted("place", n=60)
    looked = []

    class Fresh(SupervisedLabelAttack):
        """Of a name of its own, so that nothing is known yet."""

        name = "fresh"
        folds = 2
        size: int = 1

        def learn(self, x, y, unknown, rng):
            looked.append(len(x))
            return np.full(len(unknown), rng.integers(2))

    class Other(Fresh):
        """Another one."""

    def times(attack, x, y, **where):
        looked.clear()
        (look,) = looks_of(attack, Transcript((sent(x, **where),)), y)
        return len(looked), look.values.tolist()

    untrained = {"channel": Channel.RECOMPUTED}
    first, found = times(Fresh(), x, y, **untrained)
    assert first == 2
    assert times(Fresh(), x, y, **untrained) == (0, found)
    assert times(Fresh(), x, 1 - y, **untrained)[0] == 2
    assert times(Fresh(), x + 1, y, **untrained)[0] == 2
    assert times(Fresh(size=2), x, y, **untrained)[0] == 2
    assert times(Other(), x, y, **untrained)[0] == 2
    for where in ({"moment": 1, **untrained}, {"channel": Channel.ACTIVATIONS}):
        assert [times(Fresh(), x, y, **where)[0] for _ in range(2)] == [2, 2]


ODD = {
    "zero rows": np.zeros((30, 4)),
    "equal rows": np.ones((30, 4)) * 1e-20,
    "one dimension": np.random.default_rng(0).standard_normal((30, 1)),
    "constant columns": np.c_[np.random.default_rng(0).standard_normal((30, 2)), np.ones(30)],
    "huge": np.random.default_rng(0).standard_normal((30, 4)) * 1e15,
    "more columns than rows": np.random.default_rng(0).standard_normal((30, 99)),
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("attack", EVERY, ids=named)
def test_odd_matrix_gives_a_guess_that_can_be_scored(attack, what):
    found = success(attack, Transcript((sent(ODD[what]),)), np.arange(30) % 2)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("attack", EVERY, ids=named)
@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0], [0, 0, 1], [0, 2, 2, 2, 1]])
def test_moment_with_few_rows_or_one_class_is_guessed_about(attack, labels):
    y = np.array(labels)
    x = np.random.default_rng(0).standard_normal((len(y), 3))
    looks = looks_of(attack, Transcript((sent(x),)), y, classes=3)
    assert [len(look.values) for look in looks] == [len(y)]


def test_mean_of_the_vectors_of_an_example_stands_for_it():
    values = np.array([[1.0], [3.0], [5.0]], np.float32)
    message = replace(sent(values), rows=np.array([4, 7]), lengths=np.array([2, 1]))
    (matrix,) = matrices(Transcript((message,)))
    assert matrix.values.tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (12, 12)])
def test_principal_components_are_those_of_the_thin_decomposition(shape):
    rng = np.random.default_rng(0)
    x = (5 + rng.standard_normal(shape) * np.linspace(1, 3, shape[1])).astype(np.float32)
    u, sizes, _ = np.linalg.svd(x.astype(float) - x.mean(0, dtype=float), full_matrices=False)
    found = principal(x, 4)
    np.testing.assert_allclose(abs(found), abs((u * sizes)[:, :4]), rtol=1e-3, atol=1e-3)
    assert principal(x, 99).shape == (shape[0], min(shape))
