"""The first principal direction, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from leakboard.attacks.spectral import Spectral


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (12, 12)])
def test_ranks_are_projections_of_centred_rows_on_the_first_right_singular_vector(shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) * np.linspace(1, 3, shape[1])
    # A mean far from zero would be the first direction of rows that are not centred.
    x = (x + 50 * rng.standard_normal(shape[1])).astype(np.float32)
    found = Spectral().read(x, 2, rng)
    u, sizes, _ = np.linalg.svd(x.astype(float) - x.mean(0, dtype=float), full_matrices=False)
    expected = u[:, 0] * sizes[0]
    assert abs(np.corrcoef(found, expected)[0, 1]) > 1 - 1e-5
    others = [abs(np.corrcoef(found, u[:, k])[0, 1]) for k in (1, -2)]
    assert max(others) < 0.01
