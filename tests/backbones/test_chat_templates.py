"""Chats as models read them: by the chat template of the tokenizer, with labels on answers only."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from cells import load_tiny

from leakboard.bench.backbones import NO_LABEL, next_tokens
from leakboard.bench.contracts.errors import LeakboardError

BASE = load_tiny("tiny-gpt2")
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPTS = (
    "<|user|> where is the order <|assistant|>",
    "<|system|> be short <|user|> call me <|assistant|> when? <|user|> today <|assistant|>",
)
ANSWERS = ("it is here", "of course")


def templated(template=CHATML):
    tokenizer = copy.deepcopy(BASE.tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.eos_token = "<|im_end|>"
    tokenizer.chat_template = template
    return replace(BASE, tokenizer=tokenizer)


def written(backbone, tokens, row, learned):
    """The text of the tokens that are labels, or of all tokens of an example."""
    one = tokens.take(tokens.lengths.new_tensor([row]))
    labels = next_tokens(one)
    ids = labels[labels != NO_LABEL] if learned else one.ids.values
    return backbone.tokenizer.decode(ids.tolist())


def test_a_chat_goes_through_the_template_and_only_its_answer_is_learned():
    backbone = templated()
    tokens = backbone.encode(PROMPTS, ANSWERS, 128, opened=True)
    expected = [
        "<|im_start|>user\nwhere is the order<|im_end|>\n<|im_start|>assistant\nit is here<|im_end|>",
        "<|im_start|>system\nbe short<|im_end|>\n<|im_start|>user\ncall me<|im_end|>\n"
        "<|im_start|>assistant\nwhen?<|im_end|>\n<|im_start|>user\ntoday<|im_end|>\n"
        "<|im_start|>assistant\nof course<|im_end|>",
    ]
    read = backbone.tokenizer(expected, add_special_tokens=False)["input_ids"]
    for row, ids in enumerate(read):
        one = tokens.take(tokens.lengths.new_tensor([row]))
        assert one.ids.values.tolist() == ids
        answer = written(backbone, tokens, row, learned=True)
        assert answer.replace(" ", "") == f"{ANSWERS[row]}<|im_end|>".replace(" ", "")
        marks = {
            backbone.tokenizer.convert_tokens_to_ids(f"<|im_{end}|>") for end in ("start", "end")
        }
        assert [i in marks for i in ids] == one.special.tolist()


def test_a_tokenizer_without_a_template_reads_roles_as_words():
    tokens = BASE.encode(PROMPTS, ANSWERS, 128, opened=True)
    plain = BASE.encode(
        (
            "User: where is the order Assistant:",
            "System: be short User: call me Assistant: when? User: today Assistant:",
        ),
        ANSWERS,
        128,
        opened=True,
    )
    assert tokens.ids.values.tolist() == plain.ids.values.tolist()
    assert tokens.types.tolist() == plain.types.tolist()


def test_prompts_that_are_no_chats_are_read_as_before():
    prompts = ("Customer: my order Agent:", "<|user|> without an end")
    with_template, without = (
        each.encode(prompts, ANSWERS, 64, opened=True).types.tolist()
        for each in (templated(), BASE)
    )
    assert with_template == without


def test_a_conversation_that_the_template_rejects_is_an_error_with_its_roles():
    strict = (
        CHATML
        + "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    )
    with pytest.raises(
        LeakboardError, match=r"chat template rejects .* roles system, user, assistant, user"
    ):
        templated(strict).encode(PROMPTS, ANSWERS, 128, opened=True)


@pytest.mark.parametrize(
    "text", ["这台机器昨天停止工作", "توقفت الآلة أمس", "the 🙃 stopped 👩🏽‍🔧", "e\u0301 a\u200bb"]
)
@pytest.mark.parametrize("model", ["tiny-gpt2", "tiny-bert"])
def test_texts_of_any_language_have_tokens(model, text):
    tokens = load_tiny(model).encode([text, f"{text} a"], None, 32)
    assert (tokens.lengths > 0).all()
    assert (~tokens.special).any()
