"""Defenses that send tokens."""

from __future__ import annotations

import pytest
from cells import DEEP, fine_tuned, leak_of, run
from trainings import trainings_of

from leakboard.bench.contracts.threat import Channel
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense


@pytest.mark.parametrize("defense", [NoDefense(), Frozen()])
def test_defenses_that_send_tokens_do_not_depend_on_the_cut(tmp_path, defense):
    records = run(tmp_path, defense, **DEEP | {"cut": (0, 1)})
    kept = [r.outcome() for r in records]
    for outcome in kept:
        del outcome["key"], outcome["cell"], outcome["leaks"]
    assert kept[0] == kept[1]
    for record in records:
        assert leak_of(record, "eia-nn").success.value == 1
        assert record.cost.bottom is None


def test_a_language_model_is_trained_once_on_all_texts_as_they_are_and_handed_out():
    (one,), session = trainings_of(NoDefense())
    assert (one.private, one.masked, one.rows, one.release) == (False, set(), None, True)
    assert session.claim is None


def test_everything_goes_up_in_the_clear():
    session, inputs, _ = fine_tuned(NoDefense(), limit=24, train={"epochs": 1})
    seen = session.wire.transcript()
    sent, tokens = seen.collect(Channel.TOKENS), inputs.tokens["train"]
    assert sent.values.tolist() == tokens.ids.values.tolist()
    assert {m.part for m in seen.messages if m.channel == Channel.GRADIENTS} == {0}
    assert Channel.ACTIVATIONS in seen.channels
