"""kmeans: label inference by clustering."""

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.bench.attacking import LabelAttack
from leakboard.bench.contracts import Measure
from leakboard.bench.methods import Source


class Clusters(LabelAttack):
    """K-means with one cluster per class and ten starts; scored under the best matching of clusters to classes."""

    name: ClassVar[str] = "kmeans"
    source: ClassVar[Source] = Source(
        "Privacy-Preserving LLM Fine-tuning over API (P³EFT)",
        "sections 3.1 and 4.1",
    )
    measure: ClassVar[Measure] = "matching"

    def read(self, x: NDArray[np.float32], classes: int, rng: Generator) -> NDArray[Any]:
        if len(x) < classes:
            return np.zeros(len(x), np.int64)
        from sklearn.cluster import KMeans  # here, since it takes a second to load
        from sklearn.exceptions import ConvergenceWarning

        found = KMeans(classes, n_init=10, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():  # there may be fewer distinct rows than clusters
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.asarray(found.fit_predict(x).astype(np.int64))
