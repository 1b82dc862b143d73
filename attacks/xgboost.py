"""xgboost: label inference by boosted trees that know half of the labels."""

from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.attacking import SupervisedLabelAttack, principal
from leakboard.bench.contracts import Ints, MissingExtra
from leakboard.bench.methods import Source

BINS = 64
"""Bins per feature; the library's default is 256."""
COMPONENTS = 48
"""Number of principal components that serve as features. On the original coordinates trees are no more
accurate, and take three to four times as long."""


class XGBoost(SupervisedLabelAttack):
    """Boosted trees that are trained on one half of the labels and tested on the other, and vice versa.

    The measure is balanced accuracy. Features are principal components; all else is the library's default, as in
    the paper.
    """

    name: ClassVar[str] = "xgboost"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving LLM Fine-tuning over API (P³EFT)", "section 4.1"
    )
    folds: ClassVar[int] = 2
    at_most: ClassVar[int | None] = 3
    version: ClassVar[int] = 3

    def learn(
        self,
        x: NDArray[np.float32],
        y: Ints,
        unknown: NDArray[np.float32],
        rng: Generator,
    ) -> Ints:
        features = principal(np.concatenate([x, unknown]), COMPONENTS)
        # One thread and coarse bins: with few rows, more of either costs time and gains nothing.
        model = _xgboost().XGBClassifier(
            n_jobs=1, max_bin=BINS, random_state=int(rng.integers(2**31))
        )
        model.fit(features[: len(x)], y)
        return np.asarray(model.predict(features[len(x) :]), np.int64)


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError:
        raise MissingExtra("XGBoost (boosted trees)", "cpu") from None
    return xgboost
