"""A Recorder around training loops of others: what flows is what is recorded, and nothing changes."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from loops import BLOCKS, WIDTH, Pooled, classifier, hooks, padded, sent, sentences, train
from torch import Tensor, nn

from leakboard.bench.backbones.backbone import Backbone
from leakboard.bench.backbones.families import family_of
from leakboard.bench.backbones.ragged import Ragged
from leakboard.bench.contracts.threat import Channel
from leakboard.bench.exchange.manifest import MANIFEST
from leakboard.bench.exchange.transcripts import read_transcript
from leakboard.bench.external.recorder import Recorder

SENT, TOKENS, PER_EXAMPLE = Channel.REPRESENTATIONS, Channel.TOKENS, Channel.ACTIVATIONS
LOGITS, LOGIT_GRADIENTS = Channel.LOGITS, Channel.LOGIT_GRADIENTS
CUT_GRADIENTS, GRADIENTS = Channel.CUT_GRADIENTS, Channel.GRADIENTS
IDS, LABELS = sentences()
pytestmark = pytest.mark.usefixtures("from_nowhere")


FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertForSequenceClassification", {}),
    "roberta": (
        "RobertaConfig",
        "RobertaForSequenceClassification",
        {"type_vocab_size": 1, "pad_token_id": 0},
    ),
    "deberta": (
        "DebertaV2Config",
        "DebertaV2ForSequenceClassification",
        {
            "relative_attention": True,
            "position_buckets": 4,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "conv_kernel_size": 3,
            "type_vocab_size": 0,
        },
    ),
    "t5": ("T5Config", "T5EncoderModel", {"d_kv": 4, "d_ff": 32, "num_layers": BLOCKS}),
    "gpt2": ("GPT2Config", "GPT2ForSequenceClassification", {"pad_token_id": 0}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", {"pad_token_id": 0}),
}


def of_family(name):
    config, model, fields = FAMILIES[name]
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": BLOCKS, "num_attention_heads": 2}
    sizes |= {"vocab_size": 60, "intermediate_size": 32, "max_position_embeddings": 32}
    torch.manual_seed(0)
    return getattr(transformers, model)(getattr(transformers, config)(**sizes | fields)).eval()


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_recorded_is_what_the_harness_sends_at_that_cut(out, name, cut, side):
    """In evaluation mode there is no dropout; differentiated it is training all the same."""
    model = of_family(name)
    ids = IDS[:4]
    batch = padded(ids, side)
    if side == "left" and name in ("bert", "gpt2"):  # which count positions from the left
        at = torch.arange(batch["input_ids"].shape[1])
        batch["position_ids"] = (at - (batch["attention_mask"] == 0).sum(1)[:, None]).clamp(0)
    with Recorder(model, cut, out):
        first = next(v for v in model(**batch).values() if isinstance(v, Tensor))
        first.sum().backward()
    inner = model.base_model
    base = Backbone(name, "", inner, None, family_of(inner.config.model_type, name))
    own = Ragged.of(ids)
    vectors = own.with_values(base.embeddings[own.values])
    with torch.no_grad():
        expected = base.bottom(vectors, torch.zeros_like(own.values), cut)
    (found,) = sent(out)
    parts = torch.split(expected.values, own.lengths.tolist())
    assert list(found) == [0, 1, 2, 3]
    for row, part in enumerate(parts):
        assert np.allclose(found[row], part.numpy(), atol=1e-5)
    (answers,) = sent(out, CUT_GRADIENTS)
    assert [a.shape for a in answers.values()] == [f.shape for f in found.values()]


@pytest.mark.parametrize("cut", [0, 2, "bert.encoder.layer.1.output", "classifier"])
def test_training_is_the_same_bit_for_bit_and_no_hook_is_left(out, cut):
    alone, recorded = classifier(), classifier()
    before = train(alone, IDS, LABELS)
    was = hooks(recorded)
    with Recorder(recorded, cut, out, tokens=True):
        assert hooks(recorded) > was
        after = train(recorded, IDS, LABELS)
    assert before == after
    state = recorded.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in alone.state_dict().items())
    assert hooks(recorded) == was
    assert (out / MANIFEST).exists()


def test_gradients_are_those_of_the_loss(out):
    model = classifier()
    seen = {}

    def loss_of(output, labels):
        """Also asks autograd itself."""
        loss = nn.functional.cross_entropy(output.logits, labels)
        (gradient,) = torch.autograd.grad(loss, output.logits, retain_graph=True)
        for i, label in enumerate(labels.tolist()):
            seen[tuple(output.logits[i].tolist())] = (label, gradient[i].clone())
        return loss

    with Recorder(model, 0, out, examples=IDS):
        train(model, IDS, LABELS, loss_of=loss_of)
    assert not read_transcript(out)[0].left_out
    for logits, gradients in zip(sent(out, LOGITS), sent(out, LOGIT_GRADIENTS), strict=True):
        for row, (values,) in logits.items():
            label, expected = seen[tuple(values.tolist())]
            assert label == LABELS[row]
            assert np.array_equal(gradients[row][0], expected.numpy())


@pytest.mark.parametrize("labels", [None, LABELS], ids=["logits", "loss and logits"])
def test_an_output_without_names_is_recorded_as_one_with_names(tmp_path, labels):
    for name in ("tuple", "names"):
        model = classifier()
        with Recorder(model, 0, tmp_path / name, examples=IDS):
            found = model(**padded(IDS), labels=labels, return_dict=name == "names")
            scores = found.logits if name == "names" else found[labels is not None]
            nn.functional.cross_entropy(scores, LABELS).backward()
    for channel in (LOGITS, LOGIT_GRADIENTS):
        (plain,), (named,) = (sent(tmp_path / name, channel) for name in ("tuple", "names"))
        assert all(np.array_equal(plain[row], named[row]) for row in range(12))


def test_of_two_passes_backward_the_first_is_recorded_and_the_other_counted(out):
    model = classifier()
    with Recorder(model, 0, out):
        logits = model(**padded(IDS)).logits
        logits.sum().backward(retain_graph=True)
        (5 * logits).sum().backward()
    (found,) = sent(out, LOGIT_GRADIENTS)
    assert all((part == 1).all() for part in found.values())
    left_out = read_transcript(out)[0].left_out
    assert left_out == {"gradients of another pass backward": 2}  # at the logits and at the cut


def test_the_gradient_at_the_cut_is_what_trains_the_embeddings(out):
    model = classifier()
    table, cut = model.bert.embeddings.word_embeddings.weight, 0
    with Recorder(model, cut, out, examples=IDS):
        model(**padded(IDS), labels=LABELS).loss.backward()
    (gradients,) = sent(out, CUT_GRADIENTS)
    summed = torch.zeros_like(table)
    for row, part in gradients.items():
        summed.index_add_(0, torch.tensor(IDS[row]), torch.from_numpy(part))
    assert torch.allclose(summed[1:], table.grad[1:], atol=1e-6)


def test_no_gradient_is_recorded_where_nothing_below_the_cut_is_trained(out):
    model = classifier()
    model.bert.embeddings.requires_grad_(False)
    model.bert.encoder.layer[0].requires_grad_(False)
    with Recorder(model, 1, out):
        train(model, IDS, LABELS)
    _, seen = read_transcript(out)
    assert seen.channels == {SENT, LOGITS, LOGIT_GRADIENTS}


def noisy(module, args, output):
    return output + 7


@pytest.mark.parametrize("when", ["before", "within"])
@pytest.mark.parametrize("cut", [0, 1, "bert.embeddings.LayerNorm"])
def test_noise_of_a_hook_of_ones_own_is_recorded(tmp_path, cut, when):
    """Also where that hook was set after the Recorder's: those of the Recorder come last."""
    found = []
    for defended in (False, True):
        model = classifier().eval()
        at = {0: model.bert.embeddings.word_embeddings, 1: model.bert.encoder.layer[0]}
        module = at[cut] if cut in at else model.get_submodule(cut)
        if defended and when == "before":
            module.register_forward_hook(noisy)
        with Recorder(model, cut, tmp_path / str(defended)):
            if defended and when == "within":
                module.register_forward_hook(lambda m, a, o: noisy(m, a, o))
            model(**padded(IDS), labels=LABELS).loss.backward()
        found += sent(tmp_path / str(defended))
    plain, moved = found
    assert all(np.allclose(moved[row], plain[row] + 7, atol=1e-5) for row in plain)


def test_noise_on_the_gradient_is_recorded(out):
    model = classifier()

    def loss_of(output, labels):
        output.logits.register_hook(torch.ones_like)
        return nn.functional.cross_entropy(output.logits, labels)

    with Recorder(model, 0, out):
        train(model, IDS, LABELS, loss_of=loss_of)
    assert all((part == 1).all() for found in sent(out, LOGIT_GRADIENTS) for part in found.values())


def test_vectors_given_instead_of_ids_are_what_is_sent(out):
    """The usual way to privatise at cut 0 without touching the model."""
    model = classifier()
    table = model.get_input_embeddings()
    with Recorder(model, 0, out, examples=IDS):
        for rows in torch.arange(12).flip(0).split(4):
            batch = padded([IDS[i] for i in rows.tolist()])
            vectors = table(batch.pop("input_ids")) * 0 + rows[:, None, None]
            model(inputs_embeds=vectors, **batch, labels=LABELS[rows]).loss.backward()
    (found,) = sent(out)
    assert sorted(found) == list(range(12))
    assert all((part == row).all() for row, part in found.items())


def test_adapters_of_peft_are_followed(out):
    import peft

    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    with warnings.catch_warnings():  # of peft, which uses what transformers will remove
        warnings.simplefilter("ignore", FutureWarning)
        model = peft.get_peft_model(classifier(), config)
    with Recorder(model, 1, out, examples=IDS):
        train(model, IDS, LABELS)
    _, seen = read_transcript(out)
    assert seen.channels == {SENT, LOGITS, LOGIT_GRADIENTS, CUT_GRADIENTS}
    first, second = sent(out)
    assert len(first) == 12
    assert not np.array_equal(first[0], second[0])


@pytest.mark.parametrize(
    ("cut", "channel", "back"),
    [("bottom.1", SENT, CUT_GRADIENTS), ("pool", PER_EXAMPLE, GRADIENTS)],
)
def test_any_module_is_recorded_at_a_submodule_that_is_named(out, cut, channel, back):
    model = Pooled()
    with Recorder(model, cut, out, examples=IDS):
        train(model, IDS, LABELS)
    manifest, seen = read_transcript(out)
    assert seen.channels == {channel, LOGITS, LOGIT_GRADIENTS, back}
    assert (manifest.model, manifest.model_hash, manifest.vocabulary) == ("Pooled", None, None)
    assert manifest.classes == 3
    first, _ = sent(out, channel)
    lengths = [len(first[row]) for row in range(12)]
    assert lengths == ([len(row) for row in IDS] if channel == SENT else [1] * 12)


class InPlace(nn.Module):
    """Changes in place what was sent."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.bottom, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.bottom(x).relu_() * 3)


def test_what_is_changed_in_place_later_is_recorded_as_it_was_sent(out):
    model, x = InPlace(), torch.randn(6, 4)
    with Recorder(model, "bottom", out):
        h = model.bottom(x)
        model(x).sum().backward()
    (found,), (back,) = sent(out, PER_EXAMPLE), sent(out, GRADIENTS)
    expected = (h > 0) * (3 * model.head.weight.sum(0))
    for row in range(6):
        assert np.array_equal(found[row][0], h[row].detach().numpy())
        assert np.allclose(back[row][0], expected[row].detach().numpy(), atol=1e-6)


def test_a_module_alone_as_the_bottom_gives_no_logits(out):
    bottom, head = Pooled(), nn.Linear(3, 3)
    with Recorder(bottom, "head", out):
        for _ in range(2):
            nn.functional.cross_entropy(head(bottom(**padded(IDS))), LABELS).backward()
    _, seen = read_transcript(out)
    assert seen.channels == {PER_EXAMPLE, GRADIENTS}


def test_logits_of_every_token_that_are_not_of_the_next_are_counted_and_not_recorded(out):
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(classifier().config).train()
    with Recorder(model, 0, out):
        for _ in range(2):
            model(**padded(IDS), labels=padded(IDS)["input_ids"]).loss.backward()
    manifest, seen = read_transcript(out)
    assert seen.channels == {SENT, CUT_GRADIENTS}
    assert manifest.left_out == {"passes with logits of every token": 2}
    assert manifest.training.head is None


def test_names_of_the_classes_go_into_the_manifest(out):
    model = classifier(id2label={0: "worse", 1: "same", 2: "better"})
    with Recorder(model, 0, out) as recorder:
        train(model, IDS, LABELS)
    assert read_transcript(out)[0].labels == ("worse", "same", "better")
    assert recorder.manifest == read_transcript(out)[0]


@pytest.mark.parametrize(
    ("outputs", "fields", "objective"),
    [
        (1, {}, "regression"),
        (3, {"problem_type": "multi_label_classification"}, "multilabel"),
        (3, {}, "classification"),
    ],
)
def test_a_transcript_says_if_labels_are_no_classes(out, outputs, fields, objective):
    model = classifier(num_labels=outputs, **fields)
    with Recorder(model, 0, out):
        model.train()
        model(**padded(IDS)).logits.square().sum().backward()
    manifest = read_transcript(out)[0]
    assert (manifest.objective, manifest.classes) == (objective, outputs)


class Held:
    """What a graph keeps for its pass backward."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()  # or this and the graph would hold each other


def test_a_pass_that_is_never_differentiated_leaves_nothing_of_its_graph(out):
    model, kept = classifier().eval(), []

    def pack(tensor):
        held = Held(tensor)
        kept.append(weakref.ref(held))
        return held

    with Recorder(model, 0, out):
        train(model, IDS, LABELS, epochs=1)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
            result = model(**padded(IDS))
        assert any(held() for held in kept)
        del result
        gc.collect()
        assert not any(held() for held in kept)
