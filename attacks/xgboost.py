"""Label leakage as what boosted trees can learn."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.attacking import ToldLabelAttack
from bench.contracts import Ints, MissingExtra
from bench.methods import Source


class XGBoost(ToldLabelAttack):
    """Boosted trees with default hyperparameters, told one half of the labels, tested on the other.

    Then the halves change places. The balanced accuracy is what a balanced test set is expected to
    give.
    """

    name: ClassVar[str] = "xgboost"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving LLM Fine-tuning over API (P³EFT)", "section 4.1"
    )
    folds: ClassVar[int] = 2
    at_most: ClassVar[int | None] = 3

    def learn(
        self,
        x: NDArray[np.float32],
        y: Ints,
        unknown: NDArray[np.float32],
        rng: np.random.Generator,
    ) -> Ints:
        # One thread: on so few rows more of them wait for each other.
        model = _xgboost().XGBClassifier(n_jobs=1, random_state=int(rng.integers(2**31)))
        return np.asarray(model.fit(x, y).predict(unknown), np.int64)


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError:
        raise MissingExtra("XGBoost (boosted trees)", "cpu") from None
    return xgboost
