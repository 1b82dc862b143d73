"""optimiser-inversion: label inference from consecutive adapter weights, by inverting the optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.attacks.spectral import Spectral
from leakboard.bench.attacking import Matrix, adapter_of, evenly_spaced, features
from leakboard.bench.backbones import Network
from leakboard.bench.contracts import Channel, Goal, Guess, Knows, Measure, ThreatModel, Transcript
from leakboard.bench.exchange import Batch, batches
from leakboard.bench.methods import Attack, Knowledge, Source

MOMENTS = 5
"""Number of moments that are analysed; each costs a forward and a backward pass, or two forward passes."""
BETA1 = 0.9
"""β₁ of AdamW, its default value."""
Series = Mapping[int, NDArray[np.float32]]


class OptimiserInversion(Attack):
    """Explain each update of θ by the batch that caused it, in two ways.

    *From the update to the gradient*, if one server received all m vectors ĝ_j of a batch: it knows J^T ĝ_j and
    fits scalars α such that Σ α_j J^T ĝ_j explains the update minus the previous momentum. Σ α_j ĝ_j is then the
    gradient, including its sign. AdamW's division by √v preserves the sign of each coordinate, so least squares
    still finds α.

    *From the update to the activations*, without any gradient: the change of each example's activations between
    the first and the last adapter of the window. Servers that do not collude can do this, too.

    Dropout is not repeated.
    """

    name: ClassVar[str] = "optimiser-inversion"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving LLM Fine-tuning over API (P³EFT)",
        "section 3.2, named there as a danger",
    )
    threat: ClassVar[ThreatModel] = ThreatModel(
        goals={Goal.LABEL},
        reads={Channel.TOKENS, Channel.PARAMETERS, Channel.GRADIENTS, Channel.ACTIVATIONS},
        knows={Knows.BASE_WEIGHTS},
    )
    measure: ClassVar[Measure] = "auc"
    costly: ClassVar[bool] = True

    def guess(self, seen: Transcript, knowledge: Knowledge, rng: Generator) -> list[Guess]:
        needed = {Channel.TOKENS, Channel.PARAMETERS, Channel.GRADIENTS}
        if not needed <= seen.channels:
            return []
        assert knowledge.network is not None
        network, found = knowledge.network(), []
        assert isinstance(network, Network)
        for moment in evenly_spaced(seen.moments(Channel.GRADIENTS), MOMENTS):
            sent_batches = batches(seen, moment)
            for adapter in sorted({adapter for _, adapter in sent_batches}):
                received = [
                    (who, sent) for (who, of), sent in sent_batches.items() if of == adapter
                ]
                vectors = len({part for _, sent in received for part in sent[0].parts})
                at: set[int] = set()
                for who, sent in received:
                    values = _values(seen, adapter, who)
                    guessed = []
                    if sent[0].step not in at:  # servers that see the same steps see the same
                        guessed.append((Channel.PARAMETERS, adapter, moved(network, sent, values)))
                        at.add(sent[0].step)
                    if len(sent[0].parts) == vectors:
                        x = np.concatenate([explained(network, batch, values) for batch in sent])
                        guessed.append((Channel.GRADIENTS, sent[0].parts[0], x))
                    rows = np.concatenate([batch.rows for batch in sent])
                    for channel, part, x in guessed:
                        matrix = Matrix(channel, moment, 0, part, who, rows, x)
                        ranks = Spectral().read(x, knowledge.classes, rng)
                        found.append(matrix.guess(self.measure, rows, ranks))
        return found


def _values(seen: Transcript, adapter: int, server: str) -> dict[int, NDArray[np.float32]]:
    """Step → θ [P] of one adapter, at the recorded steps at which a server computed its gradient.

    θ is sent with every call, and recorded once per step for all servers that receive it.
    """
    parameters = {
        m.step
        for m in seen.messages
        if (m.channel, m.recipient) == (Channel.GRADIENTS, server) and m.moment is not None
    }
    return {
        m.step: m.values
        for m in seen.messages
        if (m.channel, m.part) == (Channel.PARAMETERS, adapter)
        and m.moment is not None
        and m.step in parameters
    }


def update(values: Series, step: int) -> NDArray[np.float32]:
    """[P] estimate of what the gradient of a step added to θ.

    It is the change to the next known θ, minus the momentum if both neighbours are known; at the end of training,
    the change before.
    """
    later = [other for other in values if other > step]
    before = values.get(step - 1)
    if not later:
        earlier = max((other for other in values if other < step), default=step)
        return values[step] - values[earlier]
    change = values[min(later)] - values[step]
    if min(later) == step + 1 and before is not None:
        change = change - BETA1 * (values[step] - before)
    return change


def explained(network: Network, batch: Batch, values: Series) -> NDArray[np.float32]:
    """[B, d] the combination, of norm 1, of the batch's vectors whose gradient of θ fits the update."""
    assert batch.tokens is not None
    h = features(network, batch.tokens, torch.tensor(batch.adapter))
    weights = list(adapter_of(network).values())
    vectors = torch.tensor(batch.vectors).to(h)
    found = []
    for vector in vectors:
        gradients = torch.autograd.grad(h, weights, vector, retain_graph=True)
        found.append(torch.cat([gradient.flatten() for gradient in gradients]))
    columns = torch.stack(found, 1).cpu().double()
    target = -torch.tensor(update(values, batch.step)).double()
    sizes = columns.norm(dim=0).clamp(min=1e-30)
    a = torch.linalg.lstsq(columns / sizes, target[:, None]).solution[:, 0] / sizes
    x = torch.einsum("m,mbd->bd", a, vectors.cpu().double())
    return np.asarray((x / x.norm().clamp(min=1e-30)).float())


@torch.no_grad()
def moved(network: Network, sent: list[Batch], values: Series) -> NDArray[np.float32]:
    """[n, d] change of the activations of a window's examples from its first θ to its last.

    The last θ is the result of the last step, if it is known.
    """
    end = sent[-1].step
    first, last = torch.tensor(sent[0].adapter), torch.tensor(values.get(end + 1, values[end]))
    changes = []
    for batch in sent:
        assert batch.tokens is not None
        after = features(network, batch.tokens, last)
        changes.append(after - features(network, batch.tokens, first))
    return np.asarray(torch.cat(changes).float().cpu())
