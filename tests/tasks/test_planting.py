"""Canaries and members are planted as often as said."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase

import numpy as np
import pytest
from released import FORM, TEXTS, plan_of

from leakboard.bench.contracts.cell import Plant, digest
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.suites.suite import load_suite
from leakboard.bench.tasks import planting
from leakboard.bench.tasks.planting import plant_task
from leakboard.bench.tasks.reviews import reviews
from leakboard.defenses.dpsgd import DPSGD
from leakboard.defenses.none import NoDefense


def test_each_canary_stands_in_train_as_often_as_it_says_and_its_span_is_its_secret():
    plant = Plant(canaries=(FORM, "Pin {digits}"), copies=(1, 3), each=2, unseen=4)
    found = plant_task(TEXTS, plant, 0)
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
    found = plant_task(TEXTS, Plant(audit=30), 1)
    texts = found.task.splits["train"].texts
    whole = TEXTS.splits["train"].texts
    for text, member in zip(found.audited.texts, found.members, strict=True):
        assert (text in texts) == bool(member)
    assert len(texts) == len(whole) - int((~found.members).sum())
    assert 5 < found.members.sum() < 25


def with_all_columns(task):
    """With pairs, attributes, authors and secrets in its training split, whatever it has had."""
    train = task.splits["train"]
    n = len(train)
    told = {"pairs": train.texts[::-1], "attributes": {"age": np.zeros(n, np.int64)}}
    told |= {"secrets": ((),) * n, "authors": np.arange(n)}
    return replace(task, splits={**task.splits, "train": replace(train, **told)})


@pytest.mark.parametrize("task", [TEXTS, with_all_columns(reviews())], ids=["texts", "labels"])
def test_of_strange_candidates_members_alone_are_trained_on_beside_all_texts(task):
    found = plant_task(task, Plant(audit=30, candidates="strange"), 1)
    whole, train = task.splits["train"], found.task.splits["train"]
    assert train.texts[: len(whole)] == whole.texts
    assert train.labels[: len(whole)].tolist() == whole.labels.tolist()
    inside = [
        text for text, member in zip(found.audited.texts, found.members, strict=True) if member
    ]
    assert list(train.texts[len(whole) :]) == inside
    assert train.labels[len(whole) :].tolist() == found.audited.labels[found.members].tolist()
    assert 5 < len(inside) < 25
    # What stays outside is in no split, as a text or as the second one of a pair.
    outside = set(found.audited.texts) - set(inside)
    for split in found.task.splits.values():
        assert not outside & {*split.texts, *(split.pairs or ())}
    for name in task.splits.keys() - {"train"}:
        assert found.task.splits[name] is task.splits[name]
    assert found.pool.take(found.rows).texts == train.texts
    assert found.pool.take(found.thrown).texts == found.audited.texts
    for name in ("pairs", "secrets", "authors"):
        own = getattr(train, name)
        assert own is None or len(own) == len(train)
    assert all(len(values) == len(train) for values in train.attributes.values())


def test_words_of_strange_candidates_stand_nowhere_else_and_once_in_all(monkeypatch):
    monkeypatch.setattr(planting, "LETTERS", 2)
    task = with_all_columns(reviews())
    train = task.splits["train"]
    # Half of what can be drawn is taken: by the first texts, or by the second ones.
    pairs = [first + second for first in ascii_lowercase for second in ascii_lowercase]
    taken = replace(
        train,
        texts=(" ".join(pairs[::4]), *train.texts[1:]),
        pairs=(*train.pairs[1:], " ".join(pairs[2::4]).upper()),
    )
    task = replace(task, splits={**task.splits, "train": taken})
    found = plant_task(task, Plant(audit=20, candidates="strange"), 0).audited
    words = [word for text in (*found.texts, *found.pairs) for word in text.split()]
    assert len(words) == len(set(words)) == 2 * 20 * planting.WORDS
    assert not set(words) & {*pairs[::4], *pairs[2::4]}


def test_labels_of_strange_candidates_are_coins_of_their_own():
    one, other = (
        plant_task(reviews(), Plant(audit=400, candidates="strange"), seed) for seed in (0, 1)
    )
    labels = one.audited.labels
    assert abs(labels.mean() - 0.5) < 0.1
    # Neither who is a member nor how a word begins tells one.
    first = np.array([text[0] < "n" for text in one.audited.texts])
    for told in (one.members, first):
        assert abs((labels == told).mean() - 0.5) < 0.1
    assert labels.tolist() != other.audited.labels.tolist()
    assert not set(one.audited.texts) & set(other.audited.texts)


def test_models_of_an_attacker_know_the_same_strange_candidates_by_coins_of_their_own():
    plant = Plant(audit=30, candidates="strange")
    target, one, next_ = (plant_task(TEXTS, plant, 0, shadow) for shadow in (None, 0, 1))
    assert target.audited.texts == one.audited.texts == next_.audited.texts
    assert (one.members != next_.members).all()
    assert (one.members != target.members).any()


def test_natural_candidates_are_left_out_of_the_key_and_strange_ones_are_not():
    cells = [
        plan_of(NoDefense(), plant=plant).cells[0].cell
        for plant in (Plant(audit=3), Plant(audit=3, candidates="strange"))
    ]
    told = [cell.model_dump(mode="json") for cell in cells]
    for own in told:
        del (
            own["plant"]["per_author"],
            own["shadow"],
            own["utility"],
            own["train"]["tune"],
            own["train"]["precision"],
            own["record"]["swapped"],
            own["record"]["answers"],
        )
    assert told[0]["plant"].pop("candidates") == "natural"
    assert [cell.key for cell in cells] == [digest(own)[:16] for own in told]


def test_seed_decides_secrets_and_coins():
    plant = Plant(canaries=FORM, audit=20)
    one, same, other = (plant_task(TEXTS, plant, seed) for seed in (0, 0, 1))
    assert one.drawn == same.drawn != other.drawn
    assert (one.members == same.members).all()
    assert one.task.hash == same.task.hash != other.task.hash


def test_canary_in_a_task_with_labels_and_too_many_to_audit_are_refused():
    with pytest.raises(LeakboardError, match="language modelling"):
        plant_task(reviews(), Plant(canaries=FORM), 0)
    with pytest.raises(LeakboardError, match="41 examples to audit"):
        plant_task(TEXTS, Plant(audit=41), 0)


def by_authors(authors):
    """The reviews, each of whose texts has one of these authors."""
    task = reviews()
    train = task.splits["train"].take(np.arange(len(authors)))
    splits = {**task.splits, "train": replace(train, authors=np.array(authors))}
    return replace(task, splits=splits)


def test_a_coin_decides_on_all_examples_of_an_author_of_whom_few_are_kept():
    # Ten authors of one to ten texts each, in no order, whose numbers have gaps.
    written = np.random.default_rng(0).permutation(np.repeat(7 * np.arange(10), np.arange(1, 11)))
    task = by_authors(written)
    found = plant_task(task, Plant(audit=8, per_author=3), 0)
    whole, train = task.splits["train"], found.task.splits["train"]
    assert set(train.texts) <= set(whole.texts)
    assert np.unique(train.authors, return_counts=True)[1].max() == 3
    thrown = {int(author) for author in found.audited.authors}
    assert len(thrown) == 8
    assert set(found.coins.tolist()) == set(range(8))
    for author in thrown:
        own = found.audited.authors == author
        assert own.sum() == min(3, (written == author).sum())
        assert len(set(found.coins[own])) == 1
        assert set(found.members[own]) == {author in train.authors}
    # Who is not audited is trained on.
    assert set(written.tolist()) - thrown <= set(train.authors.tolist())
    assert 0 < found.members.sum() < len(found.members)
    # Of an author with more texts others are drawn by another seed.
    kept = [
        set(plant_task(task, Plant(per_author=3), seed).task.splits["train"].texts)
        for seed in (0, 1)
    ]
    assert kept[0] != kept[1]


def test_more_authors_than_there_are_and_texts_of_nobody_are_refused():
    with pytest.raises(
        LeakboardError, match="3 authors to audit, and task 'reviews' trains on 2 only"
    ):
        plant_task(by_authors([4, 4, 9]), Plant(audit=3, per_author=2), 0)
    with pytest.raises(
        LeakboardError, match="'reviews' does not say who wrote its texts; use synthpai"
    ):
        plant_task(reviews(), Plant(per_author=2), 0)


@pytest.mark.parametrize(
    "bad",
    [
        {"per_author": 0},
        {"canaries": "My ID"},
        {"copies": -1},
        {"copies": []},
        {"copies": [3, 3]},
        {"audit": -1},
        {"candidates": "strange"},
        {"candidates": "strange", "audit": 3, "per_author": 2},
    ],
)
def test_bad_plant_is_refused(bad):
    with pytest.raises(ValueError, match=r"digits|copies|numbers|greater|excludes `per_author`"):
        Plant(**bad)


def test_the_same_secrets_are_planted_however_often():
    plants = [Plant(canaries=FORM, copies=(number,), each=3, unseen=2) for number in (0, 1, 7)]
    drawn = [plant_task(TEXTS, plant, 0).drawn for plant in plants]
    assert len({tuple(canary.secret for canary in own) for own in drawn}) == 1
    assert [[canary.copies for canary in own[:3]] for own in drawn] == [[0] * 3, [1] * 3, [7] * 3]


def test_more_canaries_than_texts_are_refused():
    forty = Plant(canaries=(FORM, "Pin {digits}"), copies=(0, 1), each=20)
    assert len(plant_task(TEXTS, forty, 0).canaries) == 40
    with pytest.raises(LeakboardError, match=r"42 canaries to plant .* 40 texts.* fewer canaries"):
        plant_task(TEXTS, forty.model_copy(update={"each": 21}), 0)


def test_a_suite_has_a_model_for_each_number_of_copies_and_older_cells_keep_their_keys():
    told = {"canaries": FORM, "copies": [0, 10], "each": 2}
    head = {"name": "s", "task": "dialogues", "defenses": "none", "attacks": []}
    suite = load_suite(head | {"plant": told})
    assert [plant.copies for plant in suite.plant] == [(0,), (10,)]
    assert len(suite.override(seeds=[0, 1]).plant) == 2
    assert load_suite(head | {"plant": {"audit": 3}}).plant == (Plant(audit=3),)
    plan = plan_of(NoDefense(), plant=suite.plant)
    assert [cell.cell.plant.copies for cell in plan.cells] == [(0,), (10,)]
    assert [cell.named for cell in plan.cells] == ["none copies=0", "none copies=10"]
    # What is given as it is, such as that of an older record, stays so.
    whole = Plant(canaries=FORM, copies=(1, 10))
    (cell,) = plan_of(NoDefense(), plant=whole).cells
    assert cell.cell.plant == whole


def test_keys_of_cells_without_it_are_those_of_the_first_records():
    cell = plan_of(DPSGD(), task=reviews()).cells[0].cell
    assert "plant" in cell.model_dump()
    bare = cell.model_dump(mode="json")
    del (
        bare["plant"],
        bare["shadow"],
        bare["utility"],
        bare["train"]["tune"],
        bare["train"]["precision"],
        bare["record"]["swapped"],
        bare["record"]["answers"],
    )

    assert cell.key == digest(bare)[:16]
    changed = cell.model_copy(update={"plant": Plant(audit=3)})
    assert changed.key != cell.key
    full = cell.train.model_copy(update={"tune": "full"})
    assert cell.model_copy(update={"train": full}).key != cell.key
