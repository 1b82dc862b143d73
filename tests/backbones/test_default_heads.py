"""Folders as they stand on hubs: with heads of pretraining or of another task, tied and untied output layers."""

from __future__ import annotations

import pytest
import torch
import transformers
from families import saved_family
from safetensors.torch import load_file

from leakboard.bench.backbones.loading import load_backbone

HEADS = [
    ("bert", "BertForMaskedLM"),
    ("bert", "BertForPreTraining"),
    ("bert", "BertForSequenceClassification"),
    ("roberta", "RobertaForMaskedLM"),
    ("roberta", "RobertaForTokenClassification"),
    ("deberta", "DebertaV2ForMaskedLM"),
    ("deberta", "DebertaV2ForSequenceClassification"),
    ("distilbert", "DistilBertForMaskedLM"),
    ("distilbert", "DistilBertForQuestionAnswering"),
    ("electra", "ElectraForMaskedLM"),
    ("mpnet", "MPNetForMaskedLM"),
    ("modernbert", "ModernBertForMaskedLM"),
    ("modernbert", "ModernBertForSequenceClassification"),
]


@pytest.mark.parametrize(("family", "kind"), HEADS)
def test_a_head_of_the_hub_is_left_out_and_the_encoder_is_its_own(tmp_path, family, kind):
    saved_family(family, tmp_path, kind)
    backbone = load_backbone(str(tmp_path))
    whole = getattr(transformers, kind).from_pretrained(tmp_path).base_model.state_dict()
    found = backbone.model.state_dict()
    assert found.keys() <= whole.keys()
    assert {name.split(".")[0] for name in whole.keys() - found.keys()} <= {"pooler"}
    for name, values in found.items():
        assert torch.equal(values, whole[name]), name
    assert backbone.head is None


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["gpt2", "llama", "opt", "gpt-neox", "falcon", "qwen3"])
def test_an_output_layer_is_that_of_the_file_tied_or_not(tmp_path, family, tied):
    saved_family(family, tmp_path, tie_word_embeddings=tied)
    backbone = load_backbone(str(tmp_path))
    assert backbone.tied == tied
    if tied:
        assert torch.equal(backbone.output_layer(), backbone.embeddings)
    else:
        stored = load_file(tmp_path / "model.safetensors")
        (name,) = {"lm_head.weight", "embed_out.weight"} & stored.keys()
        assert torch.equal(backbone.output_layer(), stored[name])


def test_a_tokeniser_without_padding_reads_texts_of_several_lengths(tmp_path):
    backbone = load_backbone(str(saved_family("llama", tmp_path)))
    assert backbone.tokenizer.pad_token_id is None
    tokens = backbone.encode(["the film", "the film was very good"], None, 16)
    pooled = backbone.pooled(tokens)
    alone = backbone.pooled(backbone.encode(["the film"], None, 16))
    assert torch.allclose(pooled[0], alone[0], atol=1e-6)
