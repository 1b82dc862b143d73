"""Public texts are encoded once in a process, and again wherever anything about them differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cells import first_scene, make

from leakboard.bench.running.cell_context import encode_public
from leakboard.defenses.none import NoDefense


def scene(texts=None, **fields):
    """The plan, its only cell, and the task of it, with public texts in place of its own."""
    plan = make(NoDefense(), **fields)
    cell = plan.cells[0].cell
    task = plan.tasks[cell.data_hash]
    if texts is not None:
        public = replace(task.splits["auxiliary"].take(np.arange(len(texts))), texts=texts)
        task = replace(task, splits={**task.splits, "auxiliary": public})
    return cell, task, plan.backbones[cell.model_hash]


def own(*place):
    return encode_public(*place, {})["own"]


def test_later_plans_get_the_tokens_of_the_first_but_nothing_that_attacks_learned():
    first, second = (first_scene(NoDefense()).inputs.public["own"] for _ in range(2))
    assert second.tokens is first.tokens
    assert second.learned is not first.learned


def test_other_texts_lengths_and_models_are_encoded_as_if_they_were_the_first():
    ten = own(*scene(train={"max_length": 10})).tokens
    assert int(own(*scene()).tokens.lengths.max()) > 10 == int(ten.lengths.max())
    a, b = (own(*scene(texts=(text,))).tokens for text in ("a good film", "bad"))
    assert (len(a.ids.values), len(b.ids.values)) == (5, 3)
    words, pieces = own(*scene()).tokens, own(*scene(model="tiny-roberta")).tokens
    assert words.ids.values.tolist() != pieces.ids.values.tolist()
