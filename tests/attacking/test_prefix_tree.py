"""Exact perplexities by the prefix tree, against scoring each text by itself."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from cells import load_tiny
from digit_models import FORM, model_of, tokenizer_of
from tokenizers import Tokenizer, models, pre_tokenizers

from leakboard.bench.attacking.canaries import beam_search, candidates, exposure, token_ids
from leakboard.bench.attacking.prefix_tree import Tree, Walk
from leakboard.bench.backbones.precision import autocast


def chunks(rows: list[int], size: int) -> list[list[int]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


@torch.no_grad()
def one_by_one(model: Any, head: torch.Tensor, tokenizer: Any, form: str, digits: int) -> Any:
    """−ln p of each text by a forward pass over all of its tokens, texts of equal length together."""
    texts = [form.format(digits=f"{number:0{digits}d}") for number in range(10**digits)]
    ids = [tokenizer(text)["input_ids"] for text in texts]
    if not tokenizer("")["input_ids"] and tokenizer.bos_token:  # what training puts there
        ids = [[tokenizer.bos_token_id, *own] for own in ids]
    found = np.full(len(ids), np.nan)
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    for _, group in itertools.groupby(order, key=lambda row: len(ids[row])):
        for rows in chunks(list(group), 100):
            given = torch.tensor([ids[row] for row in rows])
            hidden = model(input_ids=given).last_hidden_state.double()
            scores = (hidden @ head.T.double()).log_softmax(-1)[:, :-1]
            found[rows] = -scores.gather(2, given[:, 1:, None]).sum((1, 2)).numpy()
    return found


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize(
    ("merged", "begin", "bos"),
    [(False, True, True), (True, True, True), (True, False, True), (True, False, False)],
)
@pytest.mark.parametrize("form", [FORM, "My ID is {digits}", "My {digits} is ID!"])
def test_perplexities_and_ranks_equal_those_of_scoring_every_text_by_itself(
    name, merged, begin, bos, form
):
    tokenizer = tokenizer_of(merged, begin, bos=bos)
    model, head = model_of(name, len(tokenizer))
    single = candidates(model, head, tokenizer, form, 3)
    model, head = model.double(), head.double()  # in single precision, near ones change places
    known = one_by_one(model, head, tokenizer, form, 3)
    with torch.no_grad():
        got = Walk(model, head, Tree.of(token_ids(tokenizer, form, 3), form)).run()
    assert np.abs(got - known).max() < 1e-6
    assert (np.argsort(got) == np.argsort(known)).all()
    assert single.dtype == np.float32
    assert np.abs(single - known).max() < 1e-4
    assert np.ptp(known) > 5


def test_the_tokenisers_of_these_tests_do_and_do_not_merge_figures():
    apart, joined = (tokenizer_of(merged, True) for merged in (False, True))
    text = FORM.format(digits="123995")
    assert apart.tokenize(text)[-7:] == [*"123995", "."]
    assert joined.tokenize(text)[-3:] == ["123", "99", "5."]
    lengths = {len(joined(FORM.format(digits=f"{n:03d}"))["input_ids"]) for n in range(1000)}
    assert len(lengths) > 1


@pytest.mark.parametrize("merged", [False, True])
def test_blocks_of_any_size_give_the_same(merged):
    tokenizer = tokenizer_of(merged, True)
    model, head = model_of("llama", len(tokenizer))
    at_once = candidates(model, head, tokenizer, FORM, 3)
    for memory in (1, 100_000):
        assert np.abs(candidates(model, head, tokenizer, FORM, 3, memory) - at_once).max() < 1e-4


def test_bfloat16_orders_candidates_as_float32_does_but_for_near_ones():
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("gemma3", len(tokenizer))
    full = candidates(model, head, tokenizer, FORM, 3)
    with autocast("bf16", "cpu"):
        short = candidates(model, head, tokenizer, FORM, 3)
    assert 0 < np.abs(short - full).max() < 0.2 * full.std()
    assert np.corrcoef(short, full)[0, 1] > 0.999


def test_siblings_are_told_apart_by_float32_in_bfloat16_too():
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("gemma3", len(tokenizer))
    walk = Walk(model, head, Tree.of(token_ids(tokenizer, FORM, 3), FORM))
    hidden, tokens = torch.randn(2, head.shape[1]), np.array([3, 5, 7, 9])
    owner = np.array([0, 0, 1, 1])
    with autocast("bf16", "cpu"):
        total, own = walk._scored(hidden, owner, tokens)
    scores = hidden @ head.T
    assert torch.allclose(own, scores[owner, tokens], atol=1e-6)
    assert not torch.allclose(own, scores.bfloat16().float()[owner, tokens], atol=1e-6)
    assert torch.allclose(total, scores.logsumexp(1)[owner], atol=0.02)


def test_each_inner_node_is_computed_once():
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("llama", len(tokenizer))
    seen: list[int] = []
    handle = model.embed_tokens.register_forward_hook(
        lambda _, given, __: seen.append(given[0].numel())
    )
    candidates(model, head, tokenizer, FORM, 3)
    handle.remove()
    stem = len(tokenizer("My ID is ")["input_ids"])
    assert sum(seen) == stem + 10 + 100 + 1000


def test_ten_texts_tell_the_tokens_of_all_where_figures_stand_alone():
    tokenizer = tokenizer_of(False, True)
    short = token_ids(tokenizer, FORM, 4)
    texts = [FORM.format(digits=f"{n:04d}") for n in range(10**4)]
    assert short.tolist() == tokenizer(texts)["input_ids"]


@pytest.mark.parametrize("model", ["tiny-gpt2", "tiny-llama"])
def test_what_is_ranked_and_continued_begins_as_what_is_trained_on(model):
    base, form = load_tiny(model), "my id is {digits}."
    texts = [form.format(digits=f"{n:03d}") for n in range(1000)]
    trained = base.encode(texts, None, 32, opened=True)
    ids = token_ids(base.tokenizer, form, 3)
    assert (ids == base.tokenizer.bos_token_id).sum(1).tolist() == [1] * 1000
    assert ids.flatten().tolist() == trained.ids.values.tolist()
    asked: list[int] = []

    def answer(input_ids):
        asked.append(int(input_ids[0, 0]))
        return base.model(input_ids=input_ids)

    beam_search(answer, base.head, base.tokenizer, "my id is", 2)
    assert asked == [base.tokenizer.bos_token_id] * 2


def test_what_a_model_prints_is_its_greedy_continuation():
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("gpt2", len(tokenizer))
    ids = tokenizer("My ID is")["input_ids"]
    for _ in range(6):  # without a cache
        scores = model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1] @ head.T
        ids.append(int(scores.argmax()))
    whole = tokenizer.decode(ids, skip_special_tokens=True)
    (got,) = beam_search(model, head, tokenizer, "My ID is", 6)
    assert got
    assert whole == "My ID is" + got or whole.endswith(got)


def test_a_beam_wide_enough_prints_the_likeliest_continuations_in_order():
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("gpt2", len(tokenizer))
    prefix = tokenizer("My ID is")["input_ids"]
    first = (model(input_ids=torch.tensor([prefix])).last_hidden_state[0, -1] @ head.T).log_softmax(
        -1
    )
    each = torch.tensor([[*prefix, token] for token in range(len(head))])
    second = (model(input_ids=each).last_hidden_state[:, -1] @ head.T).log_softmax(-1)
    totals = (first[:, None] + second).flatten()  # of all continuations by two tokens
    order = totals.argsort(descending=True)[:5]
    expected = [
        tokenizer.decode([*prefix, *divmod(int(at), len(head))], skip_special_tokens=True)
        for at in order
    ]
    got = beam_search(model, head, tokenizer, "My ID is", 2, beams=len(head))
    known = tokenizer.decode(prefix, skip_special_tokens=True)
    assert [known + text for text in got[:5]] == expected


def test_a_real_model_and_the_real_tokeniser_of_gpt2(data: Path):
    folder = data / "stories260k/hf"
    if not folder.is_dir():
        pytest.skip(f"needs the model stories260k; there is none in {folder}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    whole = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    got = candidates(whole.model, whole.lm_head.weight, tokenizer, FORM, 3)
    known = one_by_one(whole.model, whole.lm_head.weight.detach(), tokenizer, FORM, 3)
    assert np.abs(got - known).max() < 1e-4
    files = ("tokenizers/gpt2-encoder.json", "tokenizers/gpt2-vocab.bpe")
    inner = Tokenizer(models.BPE.from_file(*(str(data / file) for file in files)))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    gpt2 = transformers.PreTrainedTokenizerFast(tokenizer_object=inner)
    model, head = model_of("gpt2", len(gpt2))
    got = candidates(model, head, gpt2, FORM, 3)
    known = one_by_one(model, head, gpt2, FORM, 3)
    assert np.abs(got - known).max() < 1e-4
    assert abs(exposure(got, 123) - exposure(known, 123)) < 1e-6


def test_tokens_that_no_candidate_can_hold_do_not_have_all_of_them_tokenised():
    tokenizer, asked = tokenizer_of(False, True), []
    tokenizer.add_tokens(["<h1>", "<unused7>"])

    class Counted:
        """The tokeniser, which notes how many texts it was given."""

        def __call__(self, texts, **options):
            asked.append(len(texts))
            return tokenizer(texts, **options)

        def __getattr__(self, name):
            return getattr(tokenizer, name)

    assert token_ids(Counted(), FORM, 4).tolist() == token_ids(tokenizer_of(False, True), FORM, 4).tolist()  # fmt: skip
    assert sum(asked) < 300
    asked.clear()
    tokenizer.add_tokens(["My 1"])  # this one it can
    token_ids(Counted(), "My {digits}", 4)
    assert sum(asked) > 10**4
