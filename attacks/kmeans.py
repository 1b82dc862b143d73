"""Label leakage as clusters."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.label_leakage import LabelAttack
from bench.types import Measure, Source

STARTS = 10


class KMeans(LabelAttack):
    """Clusters the rows into as many groups as there are classes.

    Lloyd's iterations from several k-means++ starts; all rows of a moment, of which there are few.
    """

    name: ClassVar[str] = "kmeans"
    source: ClassVar[Source] = Source("P³EFT", "section 4.2 and its released code")
    measure: ClassVar[Measure] = "matching"

    def read(self, x: NDArray[np.float32], classes: int, rng: np.random.Generator) -> NDArray[Any]:
        from sklearn.cluster import KMeans as Lloyd

        distinct = len(np.unique(x, axis=0))
        if distinct < classes:  # no more clusters than different rows
            return np.unique(x, axis=0, return_inverse=True)[1].reshape(-1)
        clusters = Lloyd(classes, n_init=STARTS, random_state=int(rng.integers(2**31)))
        found: NDArray[Any] = clusters.fit_predict(x)
        return found
