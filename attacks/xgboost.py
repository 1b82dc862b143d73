"""Label leakage to boosted trees that were told other labels."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.errors import MissingExtra
from bench.label_leakage import ToldAttack
from bench.types import Source


class XGBoost(ToldAttack):
    """Boosted trees with default parameters; half of the rows to fit, the other half to test.

    One model for all moments of a channel: the rows of a single one are too few for it.

    The paper tests on balanced classes, which balanced accuracy stands for.
    """

    name: ClassVar[str] = "xgboost"
    source: ClassVar[Source] = Source("P³EFT", "section 4.1, XGBoost on noisy gradients")
    costly: ClassVar[bool] = True
    folds: ClassVar[int] = 2
    pooled: ClassVar[bool] = True

    def classify(
        self, x: NDArray[np.float32], y: NDArray[Any], rest: NDArray[np.float32], seed: int
    ) -> NDArray[Any]:
        try:
            import xgboost
        except ImportError as error:
            raise MissingExtra("xgboost", "cpu") from error
        classes, codes = np.unique(y, return_inverse=True)
        model = xgboost.XGBClassifier(random_state=seed, tree_method="hist")
        found: NDArray[Any] = classes[model.fit(x, codes).predict(rest)]
        return found
