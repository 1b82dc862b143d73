"""The generated task `replies`: prompts with their answers, cut out of dialogues."""

from __future__ import annotations

from leakboard.bench.tasks.dialogues import dialogues, replies


def test_a_prompt_with_its_answer_is_a_dialogue_up_to_where_its_agent_ends():
    for name, split in replies().splits.items():
        whole = dialogues().split(name).texts
        assert len(split) == len(whole)
        for prompt, answer, dialogue in zip(split.texts, split.pairs, whole, strict=True):
            assert prompt.endswith(" Agent:")
            before, after = dialogue[: len(prompt)], dialogue[len(prompt) :]
            assert prompt == before
            assert after.startswith(f" {answer}")
            assert after[len(answer) + 1 :].strip().split(" ")[0] in ("", "Customer:")
            assert answer == answer.strip() != ""
            assert "Agent:" not in answer


def test_it_is_a_task_of_language_modelling_in_which_nobody_marked_secrets():
    task = replies()
    assert task.objective == "language modelling"
    assert all(split.secrets is None for split in task.splits.values())
    public = {*task.split("auxiliary").texts}
    assert not public & {*task.split("train").texts, *task.split("dev").texts}
