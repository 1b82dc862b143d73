"""Labels by the length of rows."""

from __future__ import annotations

import numpy as np

from leakboard.attacks.norm import Norm


def test_rows_are_ranked_by_their_euclidean_norm_as_they_are():
    x = np.array([[3, 4, 0], [0, 0, 4.5], [2.4, 2.4, 2.4], [0, -6, 0]], np.float32)
    found = Norm().read(x, 2, np.random.default_rng(0))
    # By the sum of sizes the third would be the longest, by the largest of them the first among three.
    np.testing.assert_allclose(found, [5, 4.5, 2.4 * 3**0.5, 6], rtol=1e-6)
    assert np.argsort(found).tolist() == [2, 1, 0, 3]
