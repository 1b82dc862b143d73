"""Exposure: exact perplexities by the prefix tree against scoring each text by itself."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from bench.attacking import canaries as exposures
from bench.attacking.canaries import candidates, expected_unseen, exposure, printed, token_ids
from bench.attacking.prefix_tree import Tree, Walk
from bench.contracts.errors import LeakboardError

FORM = "My ID is {digits}."
WORDS = ("My", "ĠID", "Ġis", "Ġ", ".", "!")
FIGURES = tuple("0123456789")


def tokenizer_of(merged: bool, begin: bool, words: tuple[str, ...] = WORDS) -> Any:
    """Byte-level BPE: a token per figure, or one that merges some pairs and triples, also with the space."""
    joined = ["12", "34", "00", "99", "123", "007", "Ġ1", "Ġ34", "5."] if merged else []
    letters = sorted({c for word in words for c in word} | set(FIGURES))
    tokens = dict.fromkeys(["<unk>", "<s>", *letters])
    merges: list[tuple[str, str]] = []
    for word in (*words, *joined):
        at = word[0]
        for letter in word[1:]:
            merges.append((at, letter))
            at += letter
            tokens[at] = None
    vocabulary = {token: i for i, token in enumerate(tokens)}
    unique = list(dict.fromkeys(merges))
    inner = Tokenizer(models.BPE(vocabulary, unique, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not merged)
    if begin:
        inner.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", bos_token="<s>"
    )


def model_of(name: str, vocabulary: int) -> tuple[Any, torch.Tensor]:
    """A tiny causal model of large random weights, so that candidates differ, and its head."""
    torch.manual_seed(0)
    config: Any
    if name == "llama":  # two heads to each key
        config = transformers.LlamaConfig(
            vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=24,
        )  # fmt: skip
        model = transformers.LlamaModel(config)
    else:
        config = transformers.GPT2Config(
            vocab_size=vocabulary, n_embd=16, n_layer=2, n_head=4, n_positions=32
        )
        model = transformers.GPT2Model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval(), torch.randn(vocabulary, 16)


def chunks(rows: list[int], size: int) -> list[list[int]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


@torch.no_grad()
def one_by_one(model: Any, head: torch.Tensor, tokenizer: Any, form: str, digits: int) -> Any:
    """−ln p of each text by a forward pass over all of its tokens, texts of equal length together."""
    texts = [form.format(digits=f"{number:0{digits}d}") for number in range(10**digits)]
    ids = [tokenizer(text)["input_ids"] for text in texts]
    found = np.full(len(ids), np.nan)
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    for _, group in itertools.groupby(order, key=lambda row: len(ids[row])):
        for rows in chunks(list(group), 100):
            given = torch.tensor([ids[row] for row in rows])
            hidden = model(input_ids=given).last_hidden_state.double()
            scores = (hidden @ head.T.double()).log_softmax(-1)[:, :-1]
            found[rows] = -scores.gather(2, given[:, 1:, None]).sum((1, 2)).numpy()
    return found


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@pytest.mark.parametrize(("merged", "begin"), [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("form", [FORM, "My ID is {digits}", "My {digits} is ID!"])
def test_perplexities_and_ranks_equal_those_of_scoring_every_text_by_itself(
    name, merged, begin, form
):
    tokenizer = tokenizer_of(merged, begin)
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


def test_what_a_model_prints_is_its_greedy_continuation():
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("gpt2", len(tokenizer))
    ids = tokenizer("My ID is")["input_ids"]
    for _ in range(6):  # without a cache
        scores = model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1] @ head.T
        ids.append(int(scores.argmax()))
    whole = tokenizer.decode(ids, skip_special_tokens=True)
    (got,) = printed(model, head, tokenizer, "My ID is", 6)
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
    got = printed(model, head, tokenizer, "My ID is", 2, beams=len(head))
    known = tokenizer.decode(prefix, skip_special_tokens=True)
    assert [known + text for text in got[:5]] == expected


def test_the_first_rank_is_worth_all_bits_and_the_last_none():
    scores = np.arange(10**6, dtype=np.float32)
    assert exposure(scores, 0) == pytest.approx(19.9316, abs=1e-4)
    assert exposure(scores, 10**6 - 1) == 0
    assert exposure(scores, 7) == pytest.approx(math.log2(10**6 / 8))


def test_equal_candidates_share_the_mean_of_their_ranks():
    assert exposure(np.zeros(1000), 5) == pytest.approx(math.log2(1000 / 500.5))
    scores = np.array([3.0, 1.0, 1.0, 2.0])  # ranks 4, 1.5, 1.5, 3
    assert exposure(scores, 1) == exposure(scores, 2) == pytest.approx(2 - math.log2(1.5))
    assert exposure(scores, 3) == pytest.approx(2 - math.log2(3))


@given(st.integers(1, 300))
def test_mean_exposure_over_all_secrets_is_the_derived_one(n):
    scores = np.random.default_rng(n).permutation(n)
    assert np.mean([exposure(scores, i) for i in range(n)]) == pytest.approx(expected_unseen(n))


def test_secrets_that_were_never_seen_have_the_derived_exposure_on_average():
    tokenizer = tokenizer_of(True, True)
    model, head = model_of("gpt2", len(tokenizer))
    scores = candidates(model, head, tokenizer, FORM, 3)
    drawn = np.random.default_rng(0).integers(1000, size=4000)
    measured = np.array([exposure(scores, int(truth)) for truth in drawn])
    error = measured.std() / math.sqrt(len(drawn))
    assert measured.mean() == pytest.approx(expected_unseen(1000), abs=4 * error)
    assert expected_unseen(10**6) == pytest.approx(1 / math.log(2), abs=1e-4)


@pytest.mark.parametrize(
    ("words", "form", "begin", "message"),
    [
        (WORDS, "My ID is 123.", True, "exactly one"),
        (WORDS, "Żółw {digits}.", True, "no token for a part"),
        (WORDS, "{digits} is My ID", False, "word in front"),
    ],
)
def test_a_canary_that_cannot_be_ranked_is_refused(words, form, begin, message):
    tokenizer = tokenizer_of(False, begin, words)
    model, head = model_of("llama", len(tokenizer))
    with pytest.raises(LeakboardError, match=message):
        candidates(model, head, tokenizer, form, 3)


def test_digits_that_become_the_same_token_are_refused(monkeypatch):
    tokenizer = tokenizer_of(False, True)
    model, head = model_of("llama", len(tokenizer))
    same = np.ones((1000, 4), dtype=np.int32)
    monkeypatch.setattr(exposures, "token_ids", lambda *_: same)
    with pytest.raises(LeakboardError, match="same tokens of different digits"):
        candidates(model, head, tokenizer, FORM, 3)


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
