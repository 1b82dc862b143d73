"""logreg: label inference by a linear classifier that knows a share of the labels."""

import warnings
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.attacking import SupervisedLabelAttack
from leakboard.bench.contracts import Channel, Ints
from leakboard.bench.methods import Source


class LogReg(SupervisedLabelAttack):
    """Multinomial logistic regression in three-fold cross-validation, which knows two thirds of the labels.

    It reads the activations of each adapter, and those of all adapters of one server together.

    Classes are weighted equally, since the measure is balanced accuracy; the paper's is accuracy. Columns are
    centred and share one scale: scaled separately, many uninformative columns would hide the few informative
    ones.
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
        rng: Generator,
    ) -> Ints:
        from sklearn.exceptions import ConvergenceWarning  # here, since it takes a second to load
        from sklearn.linear_model import LogisticRegression

        centre = x.mean(0)
        scale = max(float((x - centre).std()), np.finfo(np.float32).tiny)
        model = LogisticRegression(class_weight="balanced")
        with warnings.catch_warnings():  # a result without convergence is still useful
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit((x - centre) / scale, y)
        return np.asarray(model.predict((unknown - centre) / scale), np.int64)
