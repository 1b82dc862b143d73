"""Settings are chosen on a part of the training split that shares nothing with what is trained on."""

from __future__ import annotations

import numpy as np
import pytest
from cells import make

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.running.cell_context import context_of
from leakboard.bench.tasks.sources import HELD_OUT, SHARE, hold_out
from leakboard.bench.tasks.task import Split, Task
from leakboard.defenses.none import NoDefense


def task_of(texts, labels=None):
    labels = np.arange(len(texts)) % 2 if labels is None else np.array(labels)
    train = Split(tuple(texts), labels)
    return Task("mine", ("a", "b"), {"train": train, "dev": train})


def test_what_is_held_out_shares_no_source_with_what_is_trained_on():
    whole = [" ".join(f"w{i}x{j}" for j in range(12)) for i in range(50)]
    cut = [part for text in whole for part in (text, " ".join(text.split()[:9]))]
    told = hold_out(task_of(cut, [0, 1] * 50))
    kept, apart = told.splits["train"].texts, told.splits[HELD_OUT].texts
    assert sorted([*kept, *apart]) == sorted(cut)
    assert len(apart) == SHARE * len(cut)
    first = {text.split()[0] for text in apart}
    assert first.isdisjoint({text.split()[0] for text in kept})
    assert told.splits["dev"].texts == tuple(cut)


def test_a_split_of_one_source_or_with_a_class_in_one_part_only_is_refused():
    with pytest.raises(LeakboardError, match="come from one source"):
        hold_out(task_of(["the same words again and again and again"] * 6))
    rare = [f"text number {i} of many" for i in range(30)]
    with pytest.raises(LeakboardError, match="b is in only one of the two parts"):
        hold_out(task_of(rare, [1, *[0] * 29]))


def test_a_cell_that_is_evaluated_on_it_trains_on_the_rest_alone():
    plain, chosen = (make(NoDefense(), limit=60, evaluate=e) for e in ("dev", HELD_OUT))
    before = context_of(plain, plain.cells[0]).inputs
    after = context_of(chosen, chosen.cells[0]).inputs
    texts = after.task.splits["train"].texts
    assert {*texts} | {*after.task.splits[HELD_OUT].texts} == {*before.task.splits["train"].texts}
    assert {*texts}.isdisjoint(after.task.splits[HELD_OUT].texts)
    assert len(after.tokens["train"]) == len(texts)
    assert plain.cells[0].cell.key != chosen.cells[0].cell.key


def test_a_task_without_a_labelled_test_is_refused_by_a_suite_that_reports_on_it(tmp_path):
    (tmp_path / "mine").mkdir()
    lines = "text\tlabel\n" + "\n".join(f"word {i}\t{i % 2}" for i in range(20))
    for split in ("train", "dev"):
        (tmp_path / "mine" / f"{split}.tsv").write_text(lines)
    from leakboard.bench.running.plan import make_plan
    from leakboard.bench.suites.suite import load_suite

    own = {"name": "mine", "path": str(tmp_path / "mine")}
    given = {"name": "s", "task": own, "model": "tiny-bert", "defenses": "none", "attacks": "prior"}
    with pytest.raises(LeakboardError, match="task 'mine' has no labelled test split here"):
        make_plan(load_suite(given | {"evaluate": "test"}))
    assert make_plan(load_suite(given | {"evaluate": "test"}).override(evaluate="dev")).cells
