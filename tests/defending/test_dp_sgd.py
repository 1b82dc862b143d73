"""DP-SGD: accounting against an independent accountant, gradients against single backward passes."""

from __future__ import annotations

import copy
import importlib.util
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor, nn

from leakboard.bench.contracts.errors import LeakboardError, MissingExtra

if importlib.util.find_spec("opacus") is None:
    pytest.skip("needs the extra 'dp' (opacus)", allow_module_level=True)

import transformers
from peft import LoraConfig, inject_adapter_in_model

from leakboard.bench.defending import dp_sgd
from leakboard.bench.defending.dp_sgd import (
    PrivateGradients,
    check_claim,
    epsilon_spent,
    noise_for,
    poisson_batches,
)

SETTINGS = [
    (1.0, 0.01, 1000, 1e-5),
    (0.6, 0.02, 300, 1e-6),
    (2.0, 0.05, 400, 1e-5),
    (5.0, 1.0, 20, 1e-6),
    (8.0, 0.1, 500, 1e-4),
]
"""σ, sampling rate, steps, δ."""
tiny: dict[str, Any] = {"vocab_size": 30, "attn_implementation": "eager"}
narrow = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
MODELS: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "bert": ("BertConfig", "BertModel", narrow | {"intermediate_size": 20}, ["query", "value"]),
    "gpt2": ("GPT2Config", "GPT2Model", {"n_embd": 16, "n_layer": 2, "n_head": 2}, ["c_attn"]),
    "llama": (
        "LlamaConfig",
        "LlamaModel",
        narrow | {"intermediate_size": 20},
        ["q_proj", "v_proj"],
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


class Classifier(nn.Module):
    """A frozen model with LoRA and a trained head on the mean over real tokens; no dropout."""

    def __init__(self, name: str) -> None:
        super().__init__()
        config, model, fields, targets = MODELS[name]
        torch.manual_seed(0)
        made = getattr(transformers, config)(**tiny, **fields)
        self.encoder = getattr(transformers, model)(made).requires_grad_(False)
        settings = LoraConfig(r=3, target_modules=targets, fan_in_fan_out=name == "gpt2")
        inject_adapter_in_model(settings, self.encoder)
        self.head = nn.Linear(16, 3)
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        with torch.no_grad():  # LoRA starts at zero, where half of its gradients vanish
            for parameter in self.trained():
                parameter.normal_(std=0.3)

    def trained(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]

    def losses(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        out = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        mean = (out * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return nn.functional.cross_entropy(self.head(mean), labels, reduction="none")


def examples(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids and mask [n, 9] of different lengths, and labels [n]."""
    draw = torch.Generator().manual_seed(1)
    lengths = torch.randint(2, 10, (n, 1), generator=draw)
    ids = torch.randint(0, 30, (n, 9), generator=draw)
    return ids, (torch.arange(9) < lengths).long(), torch.randint(0, 3, (n,), generator=draw)


def one_by_one(model: Classifier, batch: tuple[Tensor, ...]) -> list[list[Tensor]]:
    """Gradients of each example from a backward pass of its own, without padding."""
    found = []
    for ids, mask, label in zip(*batch, strict=True):
        real = int(mask.sum())
        loss = model.losses(ids[None, :real], mask[None, :real], label[None])
        found.append(list(torch.autograd.grad(loss.sum(), model.trained())))
    return found


def opened(
    model: nn.Module,
    clip: float = 1.0,
    sigma: float = 0.0,
    n: float = 1,
    seed: int = 0,
    hooked: bool = True,
) -> Any:
    return PrivateGradients(model, clip, sigma, n, np.random.default_rng(seed), hooked)


@every_model
@pytest.mark.parametrize("hooked", [True, False])
def test_gradients_of_single_examples_equal_single_backward_passes(name, hooked):
    model, batch = Classifier(name).train(), examples(6)
    known = one_by_one(model, batch)
    with opened(model, hooked=hooked) as gradients:
        got = gradients.per_example(model.losses(*batch))
    for j in range(len(known[0])):
        assert got[j].shape == (6, *known[0][j].shape)
        assert torch.allclose(got[j], torch.stack([k[j] for k in known]), atol=1e-5)
    assert max(float(g.abs().max()) for g in got) > 0.05


@every_model
def test_each_example_is_clipped_over_all_parameters_together_whatever_the_micro_batches(name):
    model, batch, expected = Classifier(name).train(), examples(7), 4.0
    known = one_by_one(model, batch)
    norms = [float(torch.cat([g.flatten() for g in k]).norm()) for k in known]
    clip = sorted(norms)[3]  # some are clipped, and some are not
    total = [
        sum(k[j] * min(1.0, clip / norm) for k, norm in zip(known, norms, strict=True)) / expected
        for j in range(len(known[0]))
    ]
    for parts in ([slice(0, 7)], [slice(0, 3), slice(3, 7)]):
        with opened(model, clip, n=expected) as gradients:
            for part in parts:
                gradients.add(model.losses(*(t[part] for t in batch)))
            gradients.release()
        for parameter, wanted in zip(model.trained(), total, strict=True):
            assert torch.allclose(parameter.grad, wanted, atol=1e-5)


def test_one_example_moves_the_sum_by_no_more_than_the_clip():
    model, batch, clip = Classifier("bert").train(), examples(5), 1e-3
    with opened(model, clip) as gradients:
        sums = []
        for n in range(6):
            gradients.add(1e4 * model.losses(*(t[:n] for t in batch)) if n else torch.zeros(0))
            gradients.release()
            sums.append(torch.cat([p.grad.flatten() for p in model.trained()]))
    for n, (fewer, more) in enumerate(itertools.pairwise(sums)):
        assert float((more - fewer).norm()) == pytest.approx(clip, rel=1e-3)
        assert float(more.norm()) <= (n + 1) * clip * (1 + 1e-5)


def test_noise_has_the_stated_deviation_and_an_empty_batch_is_noise_alone():
    model, clip, sigma, expected = Classifier("bert").train(), 0.7, 1.9, 5.0
    with opened(model, clip, sigma, expected) as gradients:
        drawn = []
        for _ in range(40):
            gradients.add(torch.zeros(0))
            gradients.release()
            drawn.append(torch.cat([p.grad.flatten() for p in model.trained()]).clone())
    values = torch.stack(drawn)
    wanted, count = sigma * clip / expected, values.numel()
    assert float(values.std()) == pytest.approx(wanted, rel=4 / (2 * count) ** 0.5)
    assert abs(float(values.mean())) < 4 * wanted / count**0.5
    apart = torch.corrcoef(values[:2])[0, 1]  # fresh noise at every step
    assert abs(float(apart)) < 4 / values.shape[1] ** 0.5


def test_the_same_seed_gives_the_same_noise_and_another_seed_another():
    def noisy(seed: int) -> Tensor:
        model, batch = Classifier("gpt2").train(), examples(3)
        with opened(model, sigma=1.0, seed=seed) as gradients:
            gradients.add(model.losses(*batch))
            gradients.release()
        return torch.cat([p.grad.flatten() for p in model.trained()])

    assert torch.equal(noisy(4), noisy(4))
    assert not torch.allclose(noisy(4), noisy(5), atol=0.1)


def test_without_clipping_or_noise_an_optimiser_steps_as_ever():
    model, batch = Classifier("llama").train(), examples(4)
    plain = copy.deepcopy(model)
    steps, optimizer = (torch.optim.SGD(each.trained(), 0.1) for each in (plain, model))
    for _ in range(2):  # the second knows nothing of the first
        steps.zero_grad()
        plain.losses(*batch).mean().backward()
        steps.step()
    with opened(model, clip=1e6, n=4) as gradients:
        for _ in range(2):
            gradients.add(model.losses(*batch))
            gradients.release()
            optimizer.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
        assert ours.requires_grad or ours.grad is None


def test_a_module_is_left_as_it_was():
    model, batch = Classifier("bert").train(), examples(2)
    before = set(vars(model)) | set(vars(model.head))
    for _ in range(2):  # and can be taken up again
        with opened(model) as gradients:
            gradients.add(model.losses(*batch))
            gradients.release()
    assert set(vars(model)) | set(vars(model.head)) <= before | {"activations"}
    assert not any(hasattr(p, "grad_sample") for p in model.parameters())
    assert not model.head._forward_hooks
    assert not model.head._backward_hooks


def test_losses_that_are_not_of_single_examples_are_refused():
    model, batch = Classifier("bert").train(), examples(4)
    with opened(model) as gradients, pytest.raises(ValueError, match="one loss per example"):
        gradients.add(model.losses(*batch).mean())
    with opened(model) as gradients, pytest.raises(ValueError, match="each of 4 examples"):
        gradients.add(model.eval().losses(*batch))
    model.train()
    with opened(model) as gradients, pytest.raises(ValueError, match="each of 2 examples"):
        gradients.add(model.losses(*batch).view(2, 2).mean(1))


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta"), SETTINGS)
def test_epsilon_agrees_with_another_accountant(sigma, rate, steps, delta):
    events = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld")
    accountant = pld.PLDAccountant()
    step = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(sigma))
    known = accountant.compose(step, steps).get_epsilon(delta)
    assert epsilon_spent(sigma, rate, steps, delta) == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_noise_for_an_epsilon_spends_it_and_hardly_less(epsilon):
    sigma = noise_for(epsilon, 1e-5, 0.02, 200)
    assert 0.98 * epsilon <= epsilon_spent(sigma, 0.02, 200, 1e-5) <= 1.01 * epsilon


def test_profile_bounds_the_known_curve_of_a_gaussian_from_above_and_hardly():
    sigma, steps = 4.0, 9
    claimed = dp_sgd.epsilon_spent(sigma, 1.0, steps, 1e-5)
    profile = dp_sgd.profile(claimed, 1e-5, sigma, 1.0, steps)
    mu = steps**0.5 / sigma
    assert profile[0] == (claimed, 1e-5)
    assert len(profile) > 5
    for epsilon, delta in profile:
        ends = norm.cdf(-epsilon / mu + mu / 2), norm.cdf(-epsilon / mu - mu / 2)
        assert 0.8 * delta < ends[0] - np.exp(epsilon) * ends[1] <= delta * (1 + 1e-6)


def test_missing_secrets_more_rarely_spends_less():
    spends = [epsilon_spent(0.8, 0.05 * missed, 200, 1e-5) for missed in (1.0, 0.5, 0.1)]
    assert spends[0] > 1.5 * spends[1] > 1.5 * spends[2]


def test_poisson_batches_draw_each_row_by_itself_with_the_rate():
    n, rate, steps = 50, 0.1, 2000
    batches = poisson_batches(n, rate, steps, np.random.default_rng(0))
    sizes = np.array([len(rows) for rows in batches])
    assert len(batches) == steps
    assert sizes.mean() == pytest.approx(n * rate, abs=4 * (n * rate * 0.9 / steps) ** 0.5)
    # Fixed sizes would have no variance; binomial ones have n q (1 − q), and some are empty.
    assert sizes.var() == pytest.approx(n * rate * (1 - rate), rel=0.15)
    assert (sizes == 0).mean() == pytest.approx((1 - rate) ** n, abs=0.006)
    counts = torch.bincount(torch.cat(batches), minlength=n)
    assert int((counts - steps * rate).abs().max()) < 5 * (steps * rate * 0.9) ** 0.5
    assert all(len(rows.unique()) == len(rows) and rows.dtype == torch.long for rows in batches)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_claim(0.0, 1e-5, 100), "epsilon"),
        (lambda: check_claim(float("inf"), 1e-5, 100), "epsilon"),
        (lambda: check_claim(1.0, 0.01, 100), "delta"),
        (lambda: check_claim(1.0, 0.0, 100), "delta"),
        (lambda: noise_for(-1, 1e-5, 0.1, 10), "epsilon"),
        (lambda: noise_for(1, 1e-5, 0.0, 10), "sampling rate"),
        (lambda: epsilon_spent(1.0, 1.5, 10, 1e-5), "sampling rate"),
        (lambda: epsilon_spent(0.0, 0.5, 10, 1e-5), "sigma"),
        (lambda: epsilon_spent(1.0, 0.5, 0, 1e-5), "steps"),
        (lambda: poisson_batches(10, 2.0, 1, np.random.default_rng()), "sampling rate"),
        (lambda: opened(nn.Linear(2, 2), clip=0.0), "clip"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(LeakboardError, match=message):
        call()


def test_without_opacus_the_extra_is_named(monkeypatch):
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(dp_sgd.importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"leakboard\[dp\]"):
        epsilon_spent(1.0, 0.1, 10, 1e-5)
