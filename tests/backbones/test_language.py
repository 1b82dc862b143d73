"""Language models: their output layer, what stands before a text, and the loss of one."""

from __future__ import annotations

import pytest
import torch
import transformers
from causal import TEXTS, agrees
from cells import load_tiny

from leakboard.bench.backbones.dialogue_gpt import byte_pairs
from leakboard.bench.backbones.language import LanguageModel, covered_tokens, offsets
from leakboard.bench.backbones.loading import load_backbone, tiny
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.tasks.dialogues import dialogues
from leakboard.bench.tasks.task import Span


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_hidden_states_times_the_output_layer_are_the_logits(tmp_path, architecture, tied):
    model, tokenizer = tiny.build(f"tiny-{architecture}")
    config = model.config.__class__(**model.config.to_dict() | {"tie_word_embeddings": tied})
    torch.manual_seed(1)
    whole = type(model)(config).eval()
    with torch.no_grad():  # small random weights would hide a part that is left out
        for parameter in whole.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    whole.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backbone = load_backbone(str(tmp_path))
    assert backbone.tied == tied
    assert backbone.head.shape == backbone.embeddings.shape
    assert torch.equal(backbone.head, backbone.embeddings) == tied
    assert not hasattr(backbone.model, "lm_head")
    agrees(backbone, whole)


@pytest.mark.parametrize(("name", "tied"), [("tiny-gpt2", True), ("tiny-llama", False)])
def test_tiny_causal_models_have_the_output_layer_they_were_built_with(name, tied):
    backbone = load_tiny(name)
    assert backbone.tied == tied
    agrees(backbone, tiny.build(name)[0].eval())


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_weights_saved_without_an_output_layer_get_no_random_one(tmp_path, architecture):
    model, tokenizer = tiny.build(f"tiny-{architecture}")
    model.base_model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    backbone = load_backbone(str(tmp_path))
    if architecture == "gpt2":  # its output layer is E, which is there
        assert backbone.tied
    else:
        assert backbone.head is None
    assert torch.equal(backbone.embeddings, load_tiny(f"tiny-{architecture}").embeddings)


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta"])
def test_encoders_have_no_output_layer(name):
    assert load_tiny(name).head is None
    assert not load_tiny(name).tied


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])
def test_a_text_of_language_modelling_begins_with_one_token_that_begins_texts(name):
    backbone = load_tiny(name)
    first = backbone.tokenizer.bos_token_id
    for length in (64, 5):
        tokens = backbone.encode(TEXTS, None, length, opened=True)
        plain = backbone.encode(TEXTS, None, 64)
        for row in range(len(TEXTS)):
            one = tokens.take(torch.tensor([row]))
            ids = one.ids.values.tolist()
            assert ids[0] == first
            assert first not in ids[1:]
            assert one.special.tolist() == [True] + [False] * (len(ids) - 1)
            bare = [i for i in plain.take(torch.tensor([row])).ids.values.tolist() if i != first]
            assert ids[1:] == bare[: length - 1]
        assert len(tokens.types) == len(tokens.ids.values)


def test_classifiers_of_gpt2_still_get_the_bare_text():
    assert not load_tiny("tiny-gpt2").encode(TEXTS, None, 64).special.any()


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])
def test_tiny_causal_models_know_the_dialogues_and_take_digits_one_by_one(name):
    backbone = load_tiny(name)
    unknown = backbone.tokenizer.unk_token_id
    tokens = backbone.encode(dialogues().split("train").texts, None, 256, opened=True)
    assert unknown not in tokens.ids.values
    assert backbone.tokenizer.tokenize("SM-904817") == ["sm", "-", *"904817"]
    alone = {word for word in backbone.tokenizer.get_vocab() if set(word) & set("0123456789")}
    assert alone == set("0123456789")


def test_the_real_small_llama_is_read_with_its_output_layer(data):
    folder = data / "stories260k/hf"
    if not folder.is_dir():
        pytest.skip(f"needs the model in {folder}")
    backbone = load_backbone(str(folder))
    assert backbone.tied
    agrees(backbone, transformers.AutoModelForCausalLM.from_pretrained(folder).eval())
    pieces = backbone.tokenizer.tokenize("Call 2024 now")
    assert [piece for piece in pieces if set(piece) & set("0123456789")] == list("2024")


def test_byte_pairs_take_digits_one_by_one_and_lose_nothing():
    tokenizer = byte_pairs(dialogues().split("auxiliary").texts[:300], 400)
    assert len(tokenizer) == 400
    for text in [*dialogues().split("dev").texts[:100], "naïve € 12-345 \t x"]:
        ids = tokenizer(text)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
        for piece in tokenizer.convert_ids_to_tokens(ids):
            assert len(piece) == 1 or not set(piece) & set("0123456789")


def test_loss_of_a_text_is_that_of_each_token_given_those_before():
    backbone = load_tiny("tiny-gpt2")
    network = LanguageModel(backbone, TrainSettings()).eval()
    tokens = backbone.encode(["call parcel at 3", "the"], None, 16)
    loss, _, mask = network.losses(tokens)
    for row in range(2):
        ids = tokens.take(torch.tensor([row])).ids.values
        with torch.no_grad():
            hidden = backbone.model(ids[None]).last_hidden_state[0]
        log_p = (hidden @ backbone.head.T).log_softmax(-1)
        expected = [-float(log_p[i, ids[i + 1]]) for i in range(len(ids) - 1)]
        assert loss[row][mask[row]].tolist() == pytest.approx(expected, abs=1e-4)


def test_encoder_is_refused():
    with pytest.raises(LeakboardError, match="causal"):
        LanguageModel(load_tiny("tiny-bert"), TrainSettings())


def test_token_is_covered_where_it_shares_a_character_with_a_secret():
    where = offsets(load_tiny("tiny-gpt2"), ["call parcel at 3"], 16)[0]
    text = "call parcel at 3"
    hit = [
        text[a:b]
        for (a, b), c in zip(where, covered_tokens(where, [Span(6, 7, "x")]), strict=True)
        if c
    ]
    assert hit == ["parcel"]
