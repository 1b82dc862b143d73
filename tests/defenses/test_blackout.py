"""The control: nothing is found in it, and a flag says so if something is."""

from __future__ import annotations

import pytest
import released
import torch
from cells import fine_tuned, run, session_of
from scipy.stats import kstest

from leakboard.attacks.canary_exposure import CanaryExposure
from leakboard.attacks.extraction import Extraction
from leakboard.attacks.membership import Membership
from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.scoring import continuations
from leakboard.bench.scoring.checks import flags
from leakboard.bench.scoring.memory import EXTRACTED
from leakboard.bench.scoring.metrics import GAINED
from leakboard.defenses.blackout import NOISE, Blackout
from leakboard.defenses.none import NoDefense


def test_every_attack_fails_on_blackout(tmp_path):
    (record,) = run(tmp_path, Blackout(), limit=300)
    found = [leak for leak in record.leaks if leak.success]
    assert {leak.attack.name for leak in found} == {"eia-nn", "logit-gradient", "prior"}
    for leak in found:
        assert leak.success.low <= leak.success.chance, leak.attack.name


class Trained(Blackout):
    """A control that is none."""

    def fine_tune(self, session):
        return NoDefense().fine_tune(session)


@pytest.mark.parametrize("kind", [Blackout, Trained])
def test_attacks_on_memory_find_nothing_in_pure_noise_and_a_flag_says_if_they_do(kind):
    plant = Plant(canaries="my id is {digits}", copies=(40,), each=4, unseen=20, audit=40)
    attacks = (CanaryExposure(releases="last"), Extraction(), Membership())
    settings = {"tune": "full", "epochs": 4, "learning_rate": 1e-2}
    plan = released.plan_of(kind(), plant=plant, attacks=attacks, **settings)
    record = released.run(plan)
    assert (record.status, record.reason) == ("ok", "")
    metrics = {leak.metric for leak in record.leaks if leak.success}
    assert metrics == {
        *("exposure", GAINED, "AUC", "TPR at 1% FPR"),
        *EXTRACTED.values(),
        *continuations.PRINTED,
    }
    assert ("leak-on-blackout" in str(flags([record]))) == (kind is Trained)


def test_blackout_predicts_the_most_frequent_class_whatever_the_input():
    session, inputs = session_of(Blackout())
    scores = Blackout().fine_tune(session).predict(inputs.tokens["dev"], "dev")
    assert set(scores.argmax(1).tolist()) == {int(torch.bincount(session.labels).argmax())}


def test_what_is_sent_is_noise_of_the_right_shape_and_what_is_released_the_public_model_in_noise():
    session, inputs, tuned = fine_tuned(Blackout(), limit=40)
    tuned.predict(inputs.tokens["dev"], "dev")
    seen, network = session.wire.transcript(), session.trainee()
    for split in ("train", "dev"):
        tokens = inputs.tokens[split]
        sent = seen.collect(Channel.TOKENS, split)
        assert sent.lengths.tolist() == tokens.lengths.tolist()
        assert (sent.values == tokens.ids.values.numpy()).mean() < 0.05
    noise = [Channel.REPRESENTATIONS, Channel.ACTIVATIONS, Channel.GRADIENTS]
    for channel in (*noise, Channel.LOGIT_GRADIENTS):
        values = seen.collect(channel).values
        assert kstest(values.ravel(), "norm").pvalue > 1e-3, channel
    (release,) = (m.values[0] for m in seen.messages if m.channel == Channel.MODEL)
    start = torch.nn.utils.parameters_to_vector(network.trained()).detach().numpy()
    assert kstest((release - start) / NOISE, "norm").pvalue > 1e-3
