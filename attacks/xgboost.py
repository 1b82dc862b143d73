"""Label leakage as what boosted trees can learn."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.attacking import SupervisedLabelAttack, principal
from leakboard.bench.contracts import Ints, MissingExtra
from leakboard.bench.methods import Source

BINS = 64
"""Of a feature; 256 in the library."""
COMPONENTS = 48
"""Features are the principal components of all rows. Trees split along single features, so that on the
model's own coordinates they read no more of the labels, and take three to four times as long."""


class XGBoost(SupervisedLabelAttack):
    """Boosted trees, told one half of the labels, tested on the other.

    Then the halves change places. The balanced accuracy is what a balanced test set is expected to
    give. Features are principal components; all else is as the library has it, as in the paper.
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
        rng: np.random.Generator,
    ) -> Ints:
        features = principal(np.concatenate([x, unknown]), COMPONENTS)
        # On so few rows threads wait for each other, and finer bins take three times as long to find no more.
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
