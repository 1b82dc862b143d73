"""Cuts after any block: the two parts of a model must be the model, in every architecture family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from families import (
    BLOCKS,
    MODELS,
    NARROW,
    WIDTH,
    WITH_SEGMENTS,
    WITHOUT_SPECIAL,
    WORDS,
    opt,
    saved_family,
    tokenizer_for,
)
from torch import Tensor

from leakboard.attacks.eia_optimise import Optimise
from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.loading import load_backbone
from leakboard.bench.backbones.network import Network
from leakboard.bench.backbones.prefix import Prefix
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.contracts.cell import TrainSettings
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.contracts.transcript import Message, Transcript
from leakboard.bench.methods.knowledge import Knowledge

TEXTS = ["the film was good", "bad", "a very bright but slow film and not quite good", "is dull"]
PAIRS = ["food was bad", "the film is very good and bright", "quite", "not a dull film"]
TRAIN = TrainSettings()


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Backbone]:
    """A tiny random model of a family, saved to a folder once and read from there."""
    loaded: dict[str, Backbone] = {}

    def by_name(name: str) -> Backbone:
        if name not in loaded:
            loaded[name] = load_backbone(str(saved_family(name, tmp_path_factory.mktemp(name))))
        return loaded[name]

    return by_name


every_family = pytest.mark.parametrize("name", MODELS)


def encoded(backbone: Backbone, name: str) -> Tokens:
    return backbone.encode(TEXTS, PAIRS if name in WITH_SEGMENTS else None, 32)


def uncut(backbone: Backbone, tokens: Tokens, name: str) -> Tensor:
    """Last hidden states [T, d] of the model as transformers runs it, one example at a time."""
    outs = []
    for row in range(len(tokens)):
        one = tokens.take(torch.tensor([row]))
        types = {"token_type_ids": one.types[None]} if name in WITH_SEGMENTS else {}
        outs.append(backbone.model(input_ids=one.ids.values[None], **types).last_hidden_state[0])
    return torch.cat(outs)


def padded(backbone: Backbone, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor]:
    vectors = tokens.ids.with_values(backbone.embeddings[tokens.ids.values])
    return vectors.padded(), vectors.mask(), vectors.with_values(tokens.types).padded()


@every_family
def test_bottom_and_top_together_are_the_uncut_model_at_every_cut(load, name):
    backbone = load(name)
    tokens = encoded(backbone, name)
    assert len(set(tokens.lengths.tolist())) > 1
    assert (name in WITH_SEGMENTS) == bool(tokens.types.any())
    expected = uncut(backbone, tokens, name)
    h, mask, types = padded(backbone, tokens)
    family, model = backbone.family, backbone.model
    assert backbone.blocks == BLOCKS
    for cut in range(BLOCKS):
        at_cut = family.bottom(model, h, mask, types, cut)
        out = family.top(model, at_cut, mask, types, cut)
        torch.testing.assert_close(out[mask], expected, atol=1e-5, rtol=1e-5)
    assert family.bottom(model, h, mask, types, 0) is h


@every_family
def test_representation_at_a_cut_is_the_hidden_state_after_that_block(load, name):
    backbone = load(name)
    tokens = encoded(backbone, name)
    types = {"token_type_ids": tokens.types[: tokens.lengths[0]][None]}
    states = backbone.model(
        input_ids=tokens.ids.values[: tokens.lengths[0]][None],
        output_hidden_states=True,
        **(types if name in WITH_SEGMENTS else {}),
    ).hidden_states
    vectors = tokens.ids.with_values(backbone.embeddings[tokens.ids.values])
    for cut in range(1, BLOCKS):
        at_cut = backbone.bottom(vectors, tokens.types, cut)
        assert at_cut.lengths.tolist() == tokens.lengths.tolist()
        first = at_cut.values[: tokens.lengths[0]]
        torch.testing.assert_close(first, states[cut][0], atol=1e-5, rtol=1e-5)


@every_family
def test_gradients_reach_the_word_embeddings_through_both_parts(load, name):
    backbone = load(name)
    h, mask, types = padded(backbone, encoded(backbone, name))
    family, model = backbone.family, backbone.model
    gradients = []
    for cut in range(BLOCKS):
        h = h.detach().requires_grad_()
        at_cut = family.bottom(model, h, mask, types, cut)
        out = family.top(model, at_cut, mask, types, cut)
        (gradient,) = torch.autograd.grad(out[mask].pow(3).sum(), h)
        gradients.append(gradient[mask])
        assert (gradients[-1].norm(dim=1) > 0).all()
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], atol=1e-3, rtol=1e-3)


@every_family
def test_what_stands_in_the_padding_never_reaches_a_real_position(load, name):
    backbone = load(name)
    h, mask, types = padded(backbone, encoded(backbone, name))
    family, model = backbone.family, backbone.model
    for cut in range(BLOCKS):
        junk = torch.where(mask[:, :, None], h, 50.0)
        at_cut = [family.bottom(model, x, mask, types, cut) for x in (h, junk)]
        torch.testing.assert_close(at_cut[0][mask], at_cut[1][mask])
        spoiled = torch.where(mask[:, :, None], at_cut[0], 50.0)
        outs = [family.top(model, x, mask, types, cut) for x in (at_cut[0], spoiled)]
        torch.testing.assert_close(outs[0][mask], outs[1][mask])


@every_family
@pytest.mark.parametrize("bottom", [False, True])
def test_lora_adapts_every_block_of_the_top_and_none_below_unless_the_bottom_trains(
    load, name, bottom
):
    backbone = load(name)
    for cut in range(BLOCKS):
        network = Network(backbone, cut, 2, TRAIN, slice(0 if bottom else cut, None))
        stack = network.family.stack(network.encoder)
        adapted = [any(p.requires_grad for p in block.parameters()) for block in stack]
        assert adapted == [bottom or i >= cut for i in range(BLOCKS)]
        trained = sum(p.numel() for p in network.trained()) - (WIDTH + 1) * 2
        in_stack = sum(p.numel() for p in stack.parameters() if p.requires_grad)
        assert trained == in_stack, "something outside the blocks is trained"


@every_family
def test_a_fresh_network_computes_what_the_public_model_does(load, name):
    backbone = load(name)
    tokens = encoded(backbone, name)
    network = Network(backbone, 2, 2, TRAIN, slice(2, None)).eval()
    vectors = tokens.ids.with_values(network.embeddings(tokens.ids.values))
    features = network.features(network.bottom(vectors, tokens.types), tokens.types)
    states = tokens.ids.with_values(uncut(backbone, tokens, name)).padded()
    expected = states.sum(1) / tokens.lengths[:, None]
    torch.testing.assert_close(features, expected, atol=1e-5, rtol=1e-5)


@every_family
def test_optimisation_reads_every_family_behind_its_first_block(load, name):
    backbone, rng = load(name), np.random.default_rng(0)
    tokens = backbone.encode([" ".join(rng.choice(WORDS, 3 + i)) for i in range(12)], None, 32)
    words = tokens.ids.with_values(backbone.embeddings[tokens.ids.values])
    vectors = backbone.bottom(words, tokens.types, 1).values.numpy()
    rows, lengths = np.arange(len(tokens)), tokens.lengths.numpy()
    sent = Message(
        Channel.REPRESENTATIONS, "train", 0, "customer", "vendor", 0, rows, vectors, lengths
    )
    (guess,) = Optimise().guess(Transcript((sent,)), Knowledge(2, "cpu", cut=1, base=backbone), rng)
    right = guess.values[:, 0] == tokens.ids.values.numpy()
    # Random weights on 16 coordinates hide more than trained ones; guessing finds one in 16, or in 71.
    assert right[~tokens.special.numpy()].mean() > min(0.4, 12 / len(backbone.embeddings))


@every_family
def test_cuts_above_the_last_block_are_refused_with_the_deepest_one(load, name):
    backbone = load(name)
    backbone.check_cut(BLOCKS - 1)
    for cut in (-1, BLOCKS):
        with pytest.raises(LeakboardError, match=f"the deepest cut is {BLOCKS - 1}"):
            backbone.check_cut(cut)


@pytest.mark.parametrize("name", WITHOUT_SPECIAL)
def test_tokenisers_without_special_tokens_hide_nothing_from_privatisation(load, name):
    backbone = load(name)
    tokens = backbone.encode(TEXTS, None, 32)
    assert backbone.special_ids == ()
    assert not tokens.special.any()
    assert not tokens.types.any()
    assert tokens.lengths.tolist() == [len(text.split()) for text in TEXTS]


def test_texts_without_any_token_are_named_before_they_turn_into_nan(load):
    with pytest.raises(LeakboardError, match="2 texts have no tokens"):
        load("gpt2").encode(["good", "", ""], None, 32)
    assert load("bert").encode([""], None, 32).lengths.tolist() == [2]


def test_word_embeddings_that_a_model_scales_are_sent_and_searched_as_they_stand(load):
    backbone = load("gemma3")
    table = backbone.model.embed_tokens
    assert float(table.embed_scale) == WIDTH**0.5
    ids = torch.tensor([4, 7])
    network = Network(backbone, 0, 2, TRAIN, slice(0, None))
    assert torch.equal(network.embeddings(ids), table.weight[ids])
    assert torch.equal(backbone.embeddings, table.weight)
    assert network.embeddings.weight is network.encoder.embed_tokens.weight


def test_a_gemma_that_looks_ahead_is_refused(load):
    backbone = load("gemma3")
    tokens = backbone.encode(TEXTS, None, 32)
    h, mask, types = padded(backbone, tokens)
    backbone.model.config.use_bidirectional_attention = True
    try:
        with pytest.raises(LeakboardError, match="both directions"):
            backbone.family.top(backbone.model, h, mask, types, 0)
    finally:
        backbone.model.config.use_bidirectional_attention = False


def test_embeddings_narrower_than_the_blocks_are_refused_where_the_family_does_not_widen_them(
    tmp_path,
):
    tokenizer = tokenizer_for("opt")
    config = transformers.OPTConfig(vocab_size=len(tokenizer), **opt | {"word_embed_proj_dim": 8})
    transformers.OPTForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(LeakboardError, match=f"8 dimensions and its blocks {WIDTH}"):
        load_backbone(str(tmp_path))


@pytest.mark.parametrize("name", NARROW)
def test_narrow_embeddings_are_what_is_sent_at_cut_0_alone(load, name):
    backbone = load(name)
    tokens = encoded(backbone, name)
    vectors = tokens.ids.with_values(backbone.embeddings[tokens.ids.values])
    assert [backbone.width_at(cut) for cut in range(BLOCKS)] == [8, WIDTH, WIDTH]
    for cut in range(BLOCKS):
        sent = backbone.bottom(vectors, tokens.types, cut)
        assert sent.values.shape[1] == backbone.width_at(cut)
    assert backbone.pooled(tokens).shape == (len(TEXTS), backbone.width)


def test_passes_of_albert_share_their_weights_and_adapters_differ(load):
    backbone = load("albert")
    first, *others = backbone.family.stack(backbone.model)
    shared = {id(p) for p in first.parameters()}
    assert all({id(p) for p in block.parameters()} == shared for block in others)
    network = Network(backbone, 1, 2, TRAIN, slice(1, None))
    blocks = network.family.stack(network.encoder)
    adapters = [{id(p) for p in block.parameters() if p.requires_grad} for block in blocks]
    assert not adapters[0]
    assert adapters[1]
    assert not adapters[1] & adapters[2]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *(("bert", f"Bert{head}") for head in ("ForMaskedLM", "ForSequenceClassification")),
        ("roberta", "RobertaForMaskedLM"),
        ("deberta", "DebertaV2ForMaskedLM"),
        ("modernbert", "ModernBertForMaskedLM"),
        ("distilbert", "DistilBertForMaskedLM"),
        ("electra", "ElectraForMaskedLM"),
        ("mpnet", "MPNetForMaskedLM"),
        *(("gpt-neox", "GPTNeoXModel"), ("llama", "LlamaModel")),
    ],
)
def test_heads_of_other_tasks_are_left_out_and_missing_ones_not_invented(tmp_path, name, model):
    folder = saved_family(name, tmp_path / "model", model)
    backbone = load_backbone(str(folder))
    assert backbone.head is None
    whole = getattr(transformers, model).from_pretrained(folder)
    for key, values in backbone.model.state_dict().items():
        assert torch.equal(values, whole.base_model.state_dict()[key])


@pytest.mark.parametrize(
    ("name", "tied"),
    [
        *((name, True) for name in ("gpt2", "opt", "gpt-neox-in-turn", "falcon")),
        *((name, False) for name in ("llama", "opt-norm-behind", "gpt-neox", "olmo2")),
    ],
)
def test_output_layers_are_read_as_they_are_tied_or_not(load, name, tied):
    assert load(name).tied is tied
    assert load(name).output_layer().shape == load(name).embeddings.shape


def test_ragged_batches_pass_the_bottom_as_single_examples_do(load):
    backbone = load("bert")
    tokens = backbone.encode(TEXTS, None, 32)
    vectors = tokens.ids.with_values(backbone.embeddings[tokens.ids.values])
    together = backbone.bottom(vectors, tokens.types, 2)
    for row in range(len(tokens)):
        at = torch.tensor([row])
        one = Ragged(together.take(at).values, together.lengths[at])
        alone = backbone.bottom(vectors.take(at), tokens.take(at).types, 2)
        torch.testing.assert_close(one.values, alone.values, atol=1e-5, rtol=1e-5)


def test_a_tokeniser_that_knows_no_segments_puts_every_token_into_the_first(load):
    backbone = load("bert")

    def without_types(*args: Any, **kwargs: Any) -> dict[str, Any]:
        out = dict(backbone.tokenizer(*args, **kwargs))
        del out["token_type_ids"]
        return out

    bare = replace(backbone, tokenizer=without_types)
    assert bare.encode(TEXTS, PAIRS, 32).types.tolist() == [0] * len(
        backbone.encode(TEXTS, PAIRS, 32).types
    )


WITH_PREFIX = (
    "bert",
    "roberta",
    "electra",
    "mpnet",
    "distilbert",
    "albert",
    "deberta",
    "t5",
    "t5-encoder",
)


def projected(family, model, block, states, name):
    """Keys and values [2, heads, N, width] that a block makes of hidden states [N, d]."""
    inner = family.stack(model)[block]
    if name.startswith("t5"):
        layer = inner.layer[0]
        states, makers = layer.layer_norm(states), (layer.SelfAttention.k, layer.SelfAttention.v)
    elif name == "mpnet":
        makers = (inner.attention.attn.k, inner.attention.attn.v)
    elif name == "distilbert":
        makers = (inner.attention.k_lin, inner.attention.v_lin)
    elif name == "albert":
        own = inner.albert_layers[0].attention
        makers = (own.key, own.value)
    else:
        own = inner.attention.self
        deep = name.startswith("deberta")
        makers = (own.key_proj, own.value_proj) if deep else (own.key, own.value)
    heads, width = family.heads(model)
    return torch.stack([m(states).view(-1, heads, width).transpose(0, 1) for m in makers])


# A convolution reads neighbours, which a prefix has not.
@pytest.mark.parametrize("name", WITH_PREFIX)
def test_a_prefix_of_what_blocks_make_of_first_tokens_stands_for_these_tokens(load, name):
    backbone, n = load(name), 2
    family, model = backbone.family, backbone.model
    tokens = encoded(backbone, name)
    h, mask, types = padded(backbone, tokens)
    entered = family.enter(model, h, mask, types)
    states = [family.through(model, entered, mask, 0, i)[0, :n] for i in range(BLOCKS)]
    parts = [projected(family, model, i, x, name) for i, x in enumerate(states)]
    # The first text starts as all do: with tokens that blocks after the first see in its context alone.
    whole = family.through(model, entered, mask, 0, BLOCKS)[:1]
    rest, seen = entered[:1, n:], mask[:1, n:]
    found = family.through(model, rest, seen, 0, BLOCKS, Prefix(torch.stack(parts)))
    torch.testing.assert_close(found[seen], whole[:, n:][seen], atol=1e-4, rtol=1e-4)
    bare = family.through(model, rest, seen, 0, BLOCKS)
    assert (bare[seen] - found[seen]).abs().max() > 0.01


@pytest.mark.parametrize("name", [*WITH_PREFIX, "deberta-conv"])
def test_a_prefix_is_seen_by_every_text_of_a_batch_at_every_block_and_learns_from_it(load, name):
    backbone = load(name)
    family, model = backbone.family, backbone.model
    h, mask, types = padded(backbone, encoded(backbone, name))
    heads, width = family.heads(model)
    values = torch.randn(BLOCKS, 2, heads, 3, width, requires_grad=True)
    out = family.top(model, h, mask, types, 0, Prefix(values))
    for row in range(len(h)):
        (gradient,) = torch.autograd.grad(
            out[row][mask[row]].pow(3).sum(), values, retain_graph=True
        )
        assert (gradient.flatten(2).norm(dim=2) > 0).all(), "a block does without"
        length = int(mask[row].sum())
        alone = family.top(
            *(model, h[row : row + 1, :length], mask[row : row + 1, :length]),
            *(types[row : row + 1, :length], 0, Prefix(values)),
        )
        torch.testing.assert_close(alone[0], out[row, :length], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    ["bert", "roberta", "deberta", "deberta-conv", "t5", "gpt2", "mpnet", "distilbert", "opt"],
)
def test_more_tokens_than_a_model_has_positions_for_are_known_before_it_breaks(load, name):
    backbone = load(name)
    most = backbone.family.positions(backbone.model)
    if name in ("t5", "deberta"):  # of which only distances count
        assert most is None
        return

    def out(length):
        ids = torch.full((1, length), 5)
        h, mask = backbone.embeddings[ids], torch.ones(1, length, dtype=torch.bool)
        return backbone.family.top(backbone.model, h, mask, torch.zeros_like(ids), 0)

    assert out(most).shape[1] == most
    with pytest.raises((IndexError, RuntimeError)):
        out(most + 1)
