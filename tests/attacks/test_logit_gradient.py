"""Labels from the gradient of the logits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cells import leak_of, run
from label_attacks import sent

from leakboard.attacks.logit_gradient import LogitGradient
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Transcript
from leakboard.bench.methods.knowledge import Knowledge
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.sap import SAP


def test_logit_gradient_reads_every_label_under_sap_and_has_no_channel_elsewhere(tmp_path):
    split, none, frozen = run(tmp_path, SAP(eta=50), NoDefense(), Frozen())
    assert leak_of(split, "logit-gradient", goal="label").success.value >= 0.99
    for record in (none, frozen):
        leak = leak_of(record, "logit-gradient", view="", goal="label")
        assert leak.status == "skipped"
        assert "does not send logit-gradients" in leak.reason


def test_rounds_add_up_so_that_what_one_of_them_hides_by_rounding_the_others_tell():
    rounds = [
        [[0.2, -0.2, 0], [-3e-9, 3e-9, 0]],  # the second example looks learnt, and is not
        [[0.1, -0.1, 0], [0.4, 0.1, -0.5]],
        [[0.1, -0.1, 0], [0.3, 0.1, -0.4]],
    ]
    messages = [
        sent(values, moment=None, channel=Channel.LOGIT_GRADIENTS, step=-1) for values in rounds
    ]
    seen = Transcript(tuple(replace(m, round=r) for r, m in enumerate(messages)))
    before = [m.values.copy() for m in messages]
    (guess,) = LogitGradient().guess(seen, Knowledge(3, "cpu"), np.random.default_rng(0))
    assert guess.values.tolist() == [1, 2]
    assert guess.rows.tolist() == [0, 1]
    assert all((m.values == was).all() for m, was in zip(messages, before, strict=True))
