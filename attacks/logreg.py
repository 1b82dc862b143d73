"""Label leakage to a linear classifier that was told other labels."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.label_leakage import ToldAttack
from bench.types import Source


class LogReg(ToldAttack):
    """Multinomial logistic regression on standardised rows, in 3-fold cross-validation.

    Pessimistic: two thirds of the labels are given to it.
    """

    name: ClassVar[str] = "logreg"
    source: ClassVar[Source] = Source("P³EFT", "section 4.2, LogReg")
    folds: ClassVar[int] = 3

    def classify(
        self, x: NDArray[np.float32], y: NDArray[Any], rest: NDArray[np.float32], seed: int
    ) -> NDArray[Any]:
        from sklearn.linear_model import LogisticRegression

        mean, spread = x.mean(0), x.std(0)
        spread[spread < 1e-12] = 1.0
        # Liblinear's dual would be slower here; lbfgs needs few steps on standardised rows.
        model = LogisticRegression(max_iter=200, class_weight="balanced")
        found: NDArray[Any] = model.fit((x - mean) / spread, y).predict((rest - mean) / spread)
        return found
