"""Canaries and members are planted as often as said."""

from __future__ import annotations

import pytest
from released import FORM, TEXTS, plan_of

from bench.contracts.cell import digest
from bench.contracts.errors import LeakboardError
from bench.contracts.settings import Plant
from bench.tasks.planting import planted
from bench.tasks.reviews import reviews
from defenses.dpsgd import DPSGD


def test_each_canary_stands_in_train_as_often_as_it_says_and_its_span_is_its_secret():
    plant = Plant(canaries=(FORM, "Pin {digits}"), copies=(1, 3), each=2, unseen=4)
    found = planted(TEXTS, plant, 0)
    texts = found.task.splits["train"].texts
    for canary in found.drawn:
        text = plant.canaries[canary.form].replace("{digits}", f"{canary.secret:06d}")
        assert texts.count(text) == canary.copies
    assert len(found.canaries) == 2 * 2 * (1 + 3)
    for row, span in found.canaries.items():
        assert texts[row][span.start : span.end].isdigit()
        assert span.end - span.start == 6
        assert span in found.task.splits["train"].secrets[row]
    assert sorted({c.copies for c in found.drawn}) == [0, 1, 3]


def test_members_are_in_train_and_the_others_are_not():
    found = planted(TEXTS, Plant(audit=30), 1)
    texts = found.task.splits["train"].texts
    whole = TEXTS.splits["train"].texts
    for text, member in zip(found.audited.texts, found.members, strict=True):
        assert (text in texts) == bool(member)
    assert len(texts) == len(whole) - int((~found.members).sum())
    assert 5 < found.members.sum() < 25


def test_seed_decides_secrets_and_coins():
    plant = Plant(canaries=FORM, audit=20)
    one, same, other = (planted(TEXTS, plant, seed) for seed in (0, 0, 1))
    assert one.drawn == same.drawn != other.drawn
    assert (one.members == same.members).all()
    assert one.task.hash == same.task.hash != other.task.hash


def test_canary_in_a_task_with_labels_and_too_many_to_audit_are_refused():
    with pytest.raises(LeakboardError, match="language modelling"):
        planted(reviews(), Plant(canaries=FORM), 0)
    with pytest.raises(LeakboardError, match="41 examples to audit"):
        planted(TEXTS, Plant(audit=41), 0)


@pytest.mark.parametrize("bad", [{"canaries": "My ID"}, {"copies": 0}, {"audit": -1}])
def test_bad_plant_is_refused(bad):
    with pytest.raises(ValueError, match=r"digits|copies|numbers|greater"):
        Plant(**bad)


def test_keys_of_cells_without_it_are_those_of_the_first_records():
    cell = plan_of(DPSGD(), task=reviews()).cells[0].cell
    assert "plant" in cell.model_dump()
    bare = cell.model_dump(mode="json")
    del bare["plant"], bare["shadow"], bare["train"]["tune"], bare["train"]["precision"]

    assert cell.key == digest(bare)[:16]
    changed = cell.model_copy(update={"plant": Plant(audit=3)})
    assert changed.key != cell.key
    full = cell.train.model_copy(update={"tune": "full"})
    assert cell.model_copy(update={"train": full}).key != cell.key
