"""spectral: label inference along the first principal direction."""

from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.attacking import LabelAttack, principal
from leakboard.bench.contracts import Measure
from leakboard.bench.methods import Source


class Spectral(LabelAttack):
    """Rank the centred rows by their projection on the first right singular vector."""

    name: ClassVar[str] = "spectral"
    source: ClassVar[Source] = Source(
        "Label Leakage and Protection from Forward Embedding in Vertical Federated Learning "
        "(Sun et al. 2022)",
        "spectral attack",
        "https://arxiv.org/abs/2203.01451",
    )
    measure: ClassVar[Measure] = "auc"

    def read(self, x: NDArray[np.float32], classes: int, rng: Generator) -> NDArray[Any]:
        return principal(x, 1)[:, 0]
