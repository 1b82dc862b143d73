"""Label leakage as what a linear classifier can learn."""

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakboard.bench.attacking import SupervisedLabelAttack
from leakboard.bench.contracts import Channel, Ints
from leakboard.bench.methods import Source


class LogReg(SupervisedLabelAttack):
    """Multinomial logistic regression in three-fold cross-validation, told two thirds of the labels.

    On each adapter's activations, and on those of all adapters that one server answers for at once.

    Classes weigh the same, since the measure is the balanced accuracy; the paper's is the accuracy.
    Columns are centred and share one scale: scaled each by itself, the many that hold next to
    nothing would hide the few that tell.
    """

    name: ClassVar[str] = "logreg"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving LLM Fine-tuning over API (P³EFT)", "section 4.2"
    )
    folds: ClassVar[int] = 3
    joins: ClassVar[tuple[Channel, ...]] = (Channel.ACTIVATIONS, Channel.RECOMPUTED)

    def learn(
        self,
        x: NDArray[np.float32],
        y: Ints,
        unknown: NDArray[np.float32],
        rng: np.random.Generator,
    ) -> Ints:
        from sklearn.exceptions import ConvergenceWarning  # here, since it takes a second to load
        from sklearn.linear_model import LogisticRegression

        centre = x.mean(0)
        scale = max(float((x - centre).std()), np.finfo(np.float32).tiny)
        model = LogisticRegression(class_weight="balanced")
        with warnings.catch_warnings():  # one that stopped early still has something to say
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit((x - centre) / scale, y)
        return np.asarray(model.predict((unknown - centre) / scale), np.int64)
