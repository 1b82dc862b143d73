"""Label leakage in the lengths of the rows."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.label_leakage import LabelAttack
from bench.types import Measure, Source


class Norm(LabelAttack):
    """Ranks the rows by their Euclidean norm.

    The original takes the AUC of each batch and averages; here all rows of a moment are one sample.
    """

    name: ClassVar[str] = "norm"
    source: ClassVar[Source] = Source(
        "Label Leakage and Protection in Two-party Split Learning (Li et al. 2022)",
        "norm attack, section 3",
        "https://arxiv.org/abs/2102.08504",
    )
    measure: ClassVar[Measure] = "auc"

    def read(self, x: NDArray[np.float32], classes: int, rng: np.random.Generator) -> NDArray[Any]:
        norms: NDArray[Any] = np.linalg.norm(x, axis=1)
        return norms
