"""One colour for each defense, for ever: told apart by everybody, also by who sees no red or no green."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from leakboard.bench.methods import registry

LEAST = 15.0
"""Distance in CIELAB (ΔE of 1976); beside each other 2.3 are just noticed."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1.0, 1.08883])
SEEN = {
    "all cones": np.eye(3),
    # Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB.
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def lab(colour, seen):
    """CIELAB of '#rrggbb' as somebody sees it."""
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(seen @ linear, 0, 1) / WHITE
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_distance_is_that_of_cielab():
    assert lab("#ffffff", np.eye(3)) == pytest.approx([100, 0, 0], abs=0.02)
    assert lab("#ff0000", np.eye(3)) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)


@pytest.mark.parametrize("who", SEEN)
def test_no_two_defenses_have_colours_that_look_alike(who):
    colours = {name: cls.colour for name, cls in registry.defenses().items()}
    # Plug-ins that declare none get one by their name.
    told = {name: lab(colour, SEEN[who]) for name, colour in colours.items() if colour}
    near = {
        pair: round(float(distance), 1)
        for pair in combinations(sorted(told), 2)
        if (distance := np.linalg.norm(told[pair[0]] - told[pair[1]])) < LEAST
    }
    assert near == {}
    assert len(told) > 15
