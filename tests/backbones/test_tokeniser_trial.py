"""A tokeniser from outside is tried in a process with limits before it is opened in this one."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from model_folders import failure, reconfigured, tiny_folder

from leakboard.bench.backbones import load_classifier, tokeniser_child, tokeniser_trial
from leakboard.bench.backbones.loading import COUNTS, load_backbone
from leakboard.bench.backbones.tokeniser_trial import MEMORY, naming_panics, try_tokeniser
from leakboard.bench.contracts.errors import LeakboardError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def folder(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(tokeniser_trial, "_passed", set())
    return shutil.copytree(saved, tmp_path / "m")


def rewritten(folder, **parts):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


def replace(content, **pattern):
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*parts, key="normalizers"):
    return {"type": "Sequence", key: list(parts)}


def template(repeats):
    """A post-processor that adds one special token many times."""
    token = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    known = {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}
    single = [*repeats * [token], text]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}


PADDING = {
    "strategy": {"Fixed": 5 * 10**8},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "[PAD]",
}
HOSTILE = {
    "a chain of replacements": ("normalizer", sequence(*10 * [replace("eeeeeeee", String="e")])),
    "a long replacement of nothing": ("normalizer", replace("a" * 10**6, Regex="")),
    "a chain of normal forms": ("normalizer", sequence(*9 * [{"type": "NFKD"}])),
    "long prefixes": ("normalizer", sequence(*3 * [{"type": "Prepend", "prepend": "x" * 50}])),
    "a chain in the decoder": ("decoder", sequence(*10 * [replace("eeee", String="e")], key="decoders")),
    "a pattern that backtracks": ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": r"(x+x+)+y"}, "behavior": "Isolated", "invert": False}),
    "padding to any length": ("padding", PADDING),
    "many special tokens": ("post_processor", template(1000)),
    "an unknown kind": ("normalizer", {"type": "Evil"}),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_tokeniser_is_refused_and_never_opened_in_this_process(folder, case, monkeypatch):
    monkeypatch.setattr(
        "transformers.AutoTokenizer.from_pretrained", lambda *_, **__: pytest.fail("opened here")
    )
    key, value = HOSTILE[case]
    rewritten(folder, **{key: value})
    message = failure(folder)
    assert "its tokeniser is refused (tokenizer.json: " in message
    assert "Traceback" not in message


def test_memory_and_time_are_limited(folder):
    rewritten(folder, padding=PADDING)
    with pytest.raises(LeakboardError, match=rf"ended with code -\d+; the limits are 10 s and {MEMORY // 2**20:,} MiB"):  # fmt: skip
        try_tokeniser("x", folder)
    rewritten(folder, padding=None)
    with pytest.raises(LeakboardError, match=r"ended with code -\d+; the limits are 0 s"):
        try_tokeniser("x", folder, seconds=0)


def test_trial_that_waits_forever_is_ended(folder, monkeypatch):
    def never(*_, timeout, **__):
        raise subprocess.TimeoutExpired("x", timeout)

    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(LeakboardError, match="a trial did not end within 60 s"):
        try_tokeniser("x", folder)


def test_a_repeated_key_is_refused(folder):
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"normalizer"', '"normalizer": null, "normalizer"', 1))
    assert "a key occurs twice" in failure(folder)


def test_a_character_that_a_tokeniser_lacks_is_no_fault(folder):
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "the": 4}
    rewritten(folder, model={"type": "WordLevel", "vocab": words, "unk_token": "[gone]"})
    try_tokeniser("x", folder)


HONEST = {
    "Llama": sequence({"type": "Prepend", "prepend": "▁"}, replace("▁", String=" ")),
    "T5": sequence(replace("▁", Regex=" {2,}"), {"type": "NFKC"}),
    "BERT": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "none": None,
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
def test_normalisers_of_known_models_are_taken(folder, case):
    rewritten(folder, normalizer=HONEST[case])
    try_tokeniser("x", folder)


def test_growth_is_that_of_the_worst_text():
    grow = tokeniser_child.growth
    assert grow(replace("aaa", String="a")) == 3
    assert grow(replace("a", String="aaa")) == 1
    assert grow(replace("", String="a")) == 1
    assert grow(replace("ab", Regex="x*")) == 3
    assert grow(sequence(replace("aa", String="a"), sequence(replace("aaa", String="a")))) == 6


def test_a_tokeniser_is_tried_once(folder, monkeypatch):
    try_tokeniser("x", folder)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("tried again"))
    load_backbone(str(folder))


def test_tokeniser_without_tokenizer_json_is_tried_as_transformers_opens_it(folder, monkeypatch):
    """The trial fails if the limit leaves no memory, and holds otherwise."""
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    )
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    try_tokeniser("x", folder)
    monkeypatch.setattr(tokeniser_trial, "_passed", set())
    with pytest.raises(LeakboardError, match="its tokeniser is refused"):
        try_tokeniser("x", folder, memory=0)


def test_classifiers_and_adapters_are_tried(folder, tmp_path):
    rewritten(folder, **dict([HOSTILE["long prefixes"]]))
    with pytest.raises(LeakboardError, match="its tokeniser is refused"):
        load_classifier(str(folder), None)


def test_an_error_of_compiled_code_is_a_sentence(folder):
    pattern = {"type": "Split", "pattern": {"Regex": r"((zq)+(zq)+)+y"}, "behavior": "Isolated", "invert": False}  # fmt: skip
    rewritten(folder, pre_tokenizer=pattern)
    backbone = load_backbone(str(folder))
    with pytest.raises(LeakboardError, match="its tokeniser cannot encode a text"):
        backbone.encode([100 * "zq"], None, 16)
    with pytest.raises(KeyboardInterrupt), naming_panics("x"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"text_config": {"num_hidden_layers": 10**9}}, "asks for 1000000000 blocks"),
        ({"num_local_experts": 10**9}, "sets num_local_experts to 1,000,000,000; the limit is 131,072"),
        ({"inner_group_num": 10**9}, "sets inner_group_num to 1,000,000,000"),
        ({"attention_types": [[["global"], 10**9]]}, "sets attention_types to 1,000,000,000"),
        ({"model_type": "../bert"}, "has the architecture '../bert', which is not supported"),
        ({"model_type": "gpt_neo", "num_layers": 1}, "has the architecture 'gpt_neo', which is not supported"),
    ],
)  # fmt: skip
def test_counts_in_a_configuration_have_a_bound(folder, changes, expected):
    reconfigured(folder, **changes)
    assert expected in failure(folder)


def test_counts_are_found_by_name():
    assert all(map(COUNTS.fullmatch, ("num_experts", "n_layer", "attention_types", "num_labels")))
    assert not any(map(COUNTS.fullmatch, ("n_positions", "vocab_size", "hidden_size")))
