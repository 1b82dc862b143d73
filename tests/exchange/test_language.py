"""A language model over the wire learns what it would learn uncut, and what crosses is what is said."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import load_tiny, make, session_of
from peft import LoraConfig, inject_adapter_in_model

from leakboard.bench.backbones import labelling
from leakboard.bench.backbones.labelling import (
    NO_LABEL,
    chunked_readings,
    label_loss,
    next_tokens,
    pieces,
)
from leakboard.bench.backbones.language import LanguageModel, per_token
from leakboard.bench.backbones.ragged import Ragged, Tokens
from leakboard.bench.backbones.tiny import build
from leakboard.bench.contracts import Channel, LeakboardError
from leakboard.bench.exchange import language
from leakboard.bench.exchange.api import AT_CUSTOMER, AT_VENDOR
from leakboard.bench.exchange.training import Loop
from leakboard.defenses.dc import DistanceCorrelation
from leakboard.defenses.frozen import Frozen
from leakboard.defenses.none import NoDefense
from leakboard.defenses.p3eft import P3EFT
from leakboard.defenses.sap import SAP

TALK = {"task": "dialogues", "model": "tiny-llama", "limit": 40}
TEN = {"train": {"epochs": 2, "batch_size": 8, "learning_rate": 1e-2}}
"""Steps."""
HEADS = ("vendor", "customer")


def over_the_wire(defense, **fields):
    """The session, the truth and the tuned model, and the network that was trained."""
    session, inputs = session_of(defense, **TALK | fields)
    made, own = [], session.network

    def noted(*given, **named):
        made.append(own(*given, **named))
        return made[-1]

    session.network = noted
    return session, inputs, defense.fine_tune(session), made[0]


def uncut(session, cut):
    """The LoRA of the uncut model of transformers, tuned by its own loss of the next token."""
    model, _ = build("tiny-llama")
    model.requires_grad_(False)
    torch.manual_seed(session.seeds.initialisation)
    config = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])
    inject_adapter_in_model(config, torch.nn.ModuleList(model.model.layers[cut:]))
    lora = [p for p in model.parameters() if p.requires_grad]

    def step(rows, epoch):
        ids = session.train.ids.take(rows)
        mask = ids.mask()
        labels = ids.padded().masked_fill(~mask, -100)
        loss = model(input_ids=ids.padded(), attention_mask=mask.long(), labels=labels).loss
        loss.backward()
        return loss.item()

    loop = Loop(session.settings, session.seeds.order, 1500)
    return loop.fit(step, [{"params": lora}], session.train.lengths), lora


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    ("defense", "cut"), [(SAP(eta=None), 0), (SAP(eta=None), 1), (NoDefense(), 0)]
)
def test_ten_steps_of_split_tuning_are_those_of_the_uncut_model(defense, cut, head):
    defense = defense.model_copy(update={"head": head})
    session, _, _, network = over_the_wire(defense, cut=cut, **TEN)
    losses, lora = uncut(session, cut)
    assert len(losses) == 10
    assert losses[-1] < losses[0] - 0.05
    assert session.loss == pytest.approx(losses, rel=1e-5)
    if isinstance(defense, SAP):  # the API's adapter is the customer's, not the network's
        for mine, theirs in zip(network.trained(), lora, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("defense", [SAP(eta=None), NoDefense(), Frozen(), P3EFT(weight=0)])
@pytest.mark.parametrize("head", HEADS)
def test_an_untrained_model_has_the_same_perplexity_over_the_wire_as_by_itself(defense, head):
    if isinstance(defense, SAP | NoDefense):
        defense = defense.model_copy(update={"head": head})
    still = {"epochs": 1, "learning_rate": 1e-12, "batch_size": 20}
    session, inputs, tuned, _ = over_the_wire(defense, train=still)
    alone = per_token(LanguageModel(session.backbone, session.settings), inputs.tokens["dev"])
    there = tuned.per_token(inputs.tokens["dev"], "dev")
    # Secret mixing weights of P³EFT are large, and only their sum is 1.
    torch.testing.assert_close(there[0].values, alone[0].values, rtol=1e-3, atol=1e-3)
    assert (there[1].values == alone[1].values).float().mean() > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("defense", [SAP(eta=None), NoDefense()])
def test_what_is_said_of_the_output_layer_depends_on_who_holds_it(defense, head):
    defense = defense.model_copy(update={"head": head})
    few = {"record": {"examples": 10}, "train": {"epochs": 2, "batch_size": 8}}
    session, inputs, tuned, _ = over_the_wire(defense, **few)
    tuned.per_token(inputs.tokens["dev"], "dev")
    said = session.wire.transcript()
    spoken, silent = (AT_VENDOR, AT_CUSTOMER)[:: 1 if head == "vendor" else -1]
    assert defense.sends & (AT_VENDOR | AT_CUSTOMER) == spoken
    assert not said.channels & silent
    up, d = (Channel.LOGIT_GRADIENTS, 0) if head == "vendor" else (Channel.GRADIENTS, 32)
    assert said.rounds(up) == [0, 1]
    first = said.collect(up)
    assert first.rows.tolist() == inputs.recorded["train"].tolist()
    lengths = inputs.tokens["train"].lengths[first.rows]
    assert first.lengths.tolist() == lengths.tolist()
    width = d or len(session.backbone.embeddings)
    assert first.values.shape == (int(lengths.sum()), width)
    ends = np.cumsum(first.lengths) - 1
    assert not first.values[ends].any()  # nothing follows the last token
    assert np.abs(first.values).sum(1)[np.setdiff1d(np.arange(len(first.values)), ends)].all()
    # Vectors of single tokens are kept of the recorded examples alone, and logits, the vendor's own, not at all.
    assert not said.moments(up)
    assert Channel.LOGITS not in said.channels
    tokens = len(inputs.tokens["train"].ids.values) * 2 + len(inputs.tokens["dev"].ids.values)
    assert session.wire.bytes_down >= 4 * tokens * width


def test_with_the_head_at_the_customer_nothing_but_the_tokens_is_said_when_nothing_below_is_tuned():
    session, _, tuned, _ = over_the_wire(Frozen(), train={"epochs": 3, "learning_rate": 3e-2})
    assert session.wire.transcript().channels == {Channel.TOKENS, Channel.ACTIVATIONS}
    assert session.loss[-1] < session.loss[0] - 0.2
    loss, _ = tuned.per_token(session.train, "train")
    before, _ = per_token(LanguageModel(session.backbone, session.settings), session.train)
    assert loss.values.sum() < before.values.sum()


@pytest.mark.slow
def test_split_gradients_of_a_secret_mixture_tune_a_language_model_as_a_plain_one_is_tuned():
    """Adapters without effect differ in nothing, so that the first loss is that of plain fine-tuning."""
    curves = [
        over_the_wire(d, **TEN)[0].loss for d in (P3EFT(weight=0), NoDefense(head="customer"))
    ]
    assert curves[0][0] == pytest.approx(curves[1][0], rel=1e-3)
    assert curves[0][-1] < curves[0][0] - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_scores_of_the_whole_vocabulary_are_held_for_a_chunk_alone(head, monkeypatch):
    """What is learnt and read does not depend on the size of a chunk; what is held does."""
    found, held = [], []
    original = torch.nn.Linear.forward

    def noted(layer, x):
        if layer.out_features > 1000:
            held.append(len(x) * layer.out_features * 4)
        return original(layer, x)

    monkeypatch.setattr(torch.nn.Linear, "forward", noted)
    sizes = []
    for size in (2**27, 2**20):
        monkeypatch.setattr(labelling, "CHUNK", size)
        held.clear()
        session, inputs, tuned, network = over_the_wire(SAP(eta=None, head=head), **TEN)
        loss, hits = tuned.per_token(inputs.tokens["dev"], "dev")
        found.append([*network.trained(), loss.values, hits.values.float()])
        sizes.append(max(held))
    longest = int(max(own.lengths.max() for own in inputs.tokens.values()))
    one = 4 * longest * len(session.backbone.embeddings)
    assert sizes[0] > 2**21
    assert sizes[1] <= max(2**20, one)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_loss_and_gradient_do_not_depend_on_the_chunks(monkeypatch):
    torch.manual_seed(0)
    head, h = torch.nn.Linear(8, 50), torch.randn(21, 8, requires_grad=True)
    labels = torch.randint(0, 50, (21,))
    labels[::4] = NO_LABEL
    results = []
    for chunk in (2**20, 4 * 50 * 4):
        monkeypatch.setattr(labelling, "CHUNK", chunk)
        loss = label_loss(head, h, labels)
        results.append([loss, *torch.autograd.grad(loss, [h, *head.parameters()])])
        results[-1] += [part.float() for part in chunked_readings(head, h, labels)]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)
    expected = torch.nn.functional.cross_entropy(head(h), labels)
    torch.testing.assert_close(results[0][0], expected)


def test_pieces_hold_whole_examples_and_as_many_as_fit(monkeypatch):
    monkeypatch.setattr(labelling, "CHUNK", 10 * 4 * 7)
    lengths = torch.tensor([4, 6, 1, 30, 2, 2])
    found = [(a.start, a.stop, b.start, b.stop) for a, b in pieces(lengths, 7)]
    assert found == [(0, 2, 0, 10), (2, 3, 10, 11), (3, 4, 11, 41), (4, 6, 41, 45)]


def test_labels_are_the_tokens_that_follow_and_of_a_prompt_there_are_none():
    ids = Ragged(torch.tensor([5, 6, 7, 8, 1, 2, 3, 4]), torch.tensor([4, 1, 3]))
    plain = Tokens(ids, torch.zeros(8, dtype=torch.long), torch.zeros(8, dtype=torch.bool))
    no = NO_LABEL
    assert next_tokens(plain).tolist() == [6, 7, 8, no, no, 3, 4, no]
    types = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0])
    assert next_tokens(Tokens(ids, types, plain.special)).tolist() == [no, 7, 8, no, no, 3, 4, no]


@pytest.mark.slow
@pytest.mark.parametrize("defense", [SAP(eta=None), NoDefense()])
def test_a_private_output_layer_is_tuned_and_the_public_one_is_not(defense):
    few = {"train": {"epochs": 2, "batch_size": 8, "learning_rate": 1e-2}}
    sizes, last = [], []
    for head in ("customer", "private"):
        own = defense.model_copy(update={"head": head})
        session, inputs, tuned, network = over_the_wire(own, **few)
        assert own.sends >= AT_CUSTOMER
        sizes.append(session.trained_parameters)
        last.append(float(tuned.per_token(inputs.tokens["dev"], "dev")[0].values.sum()))
        assert torch.equal(network.head.weight, session.backbone.output_layer())
    vocabulary, width = session.backbone.output_layer().shape
    assert sizes[1] - sizes[0] == 8 * (vocabulary + width)
    assert last[1] < last[0]


@pytest.mark.parametrize("model", ["tiny-gpt2", "tiny-llama"])
def test_an_answer_that_is_there_to_its_end_is_ended(model):
    base = load_tiny(model)
    end = base.tokenizer.eos_token_id
    whole = base.encode(["call the agent"], ["the room is good"], 16, opened=True)
    assert whole.ids.values[-1] == end
    assert (whole.types[-1], bool(whole.special[-1])) == (1, True)
    assert next_tokens(whole)[-2] == end
    length = int(whole.lengths[0])
    for cut in (length - 1, length - 2):
        assert (
            base.encode(["call the agent"], ["the room is good"], cut, opened=True).ids.values[-1]
            != end
        )
    single = base.encode(["call the agent"], None, 16, opened=True)
    assert single.ids.values[-1] != end


@pytest.mark.parametrize("model", ["tiny-gpt2", "tiny-llama"])
def test_prompts_are_read_and_answers_learnt(model):
    backbone = load_tiny(model)
    tokens = backbone.encode(["call about parcel"], ["the parcel is here"], 32, opened=True)
    (answer,) = (own for own in [backbone.encode(["the parcel is here"], None, 32)])
    own = [*answer.ids.values[~answer.special].tolist(), backbone.tokenizer.eos_token_id]
    labels = next_tokens(tokens)
    assert labels[labels != NO_LABEL].tolist() == own
    network = LanguageModel(backbone, session_of(NoDefense(), **TALK)[0].settings)
    _, _, mask = network.losses(tokens)
    assert int(mask.sum()) == len(own)
    with pytest.raises(LeakboardError, match="1 prompts fill all 4 tokens"):
        backbone.encode(["call about parcel at three today"], ["yes"], 4, opened=True)


@pytest.mark.parametrize(
    ("defense", "fields", "reason"),
    [
        (DistanceCorrelation(), TALK, "nearly all different in a batch"),
        (P3EFT(), TALK, "with `weight: 0` split gradients"),
        (SAP(bottom="trainable"), TALK, "use `bottom: frozen`"),
        (NoDefense(head="vendor"), {}, "that of a classifier is the customer's"),
        (SAP(head="customer"), {}, "that of a classifier is the vendor's"),
    ],
)
def test_what_cannot_be_tuned_so_is_refused_with_what_could_be_done(defense, fields, reason):
    (cell,) = [c for c in make(defense, **fields).cells if c.defense == defense]
    assert reason in cell.skip_reason


def test_an_encoder_predicts_no_next_token():
    with pytest.raises(LeakboardError, match="does not predict the next token"):
        over_the_wire(NoDefense(head="customer"), model="tiny-bert")


def test_keys_of_older_cells_know_no_head():
    assert NoDefense().params == {}
    assert "head" not in SAP().params
    assert SAP(head="customer").params["head"] == "customer"


def test_a_model_that_predicts_tokens_has_no_classes():
    with pytest.raises(TypeError, match="predicts tokens, not classes"):
        language.NextTokens(lambda *given: None).predict(None, "dev")
