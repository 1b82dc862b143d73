"""Label leakage along the first principal direction."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from bench.attacking import LabelAttack
from bench.contracts import Measure
from bench.methods import Source


class Spectral(LabelAttack):
    """Centres the rows and ranks them by their projection on the first right singular vector."""

    name: ClassVar[str] = "spectral"
    source: ClassVar[Source] = Source(
        "Label Leakage and Protection from Forward Embedding in Vertical Federated Learning "
        "(Sun et al. 2022)",
        "spectral attack",
        "https://arxiv.org/abs/2203.01451",
    )
    measure: ClassVar[Measure] = "auc"

    def read(self, x: NDArray[np.float32], classes: int, rng: np.random.Generator) -> NDArray[Any]:
        centred = x - x.mean(0)
        n, d = centred.shape
        # u₁ scaled by its singular value is the projection; the smaller of the two Gram matrices
        # has the same spectrum as the thin SVD and is quicker.
        if n <= d:
            _, vector = eigh(centred @ centred.T, subset_by_index=[n - 1, n - 1])
            return np.asarray(vector[:, 0])
        _, vector = eigh(centred.T @ centred, subset_by_index=[d - 1, d - 1])
        return np.asarray(centred @ vector[:, 0])
