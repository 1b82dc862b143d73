"""norm: label inference from the norm of gradients."""

from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.attacking import LabelAttack
from leakboard.bench.contracts import Measure
from leakboard.bench.methods import Source


class Norm(LabelAttack):
    """Rank the rows by their Euclidean norm, since gradients of a rare class are longer."""

    name: ClassVar[str] = "norm"
    # The paper averages the AUC of each batch; here rows of one window are ranked together.
    source: ClassVar[Source] = Source(
        "Label Leakage and Protection in Two-party Split Learning (Li et al. 2022)",
        "norm attack",
        "https://arxiv.org/abs/2102.08504",
    )
    measure: ClassVar[Measure] = "auc"

    def read(self, x: NDArray[np.float32], classes: int, rng: Generator) -> NDArray[Any]:
        return np.asarray(np.linalg.norm(x, axis=1))
