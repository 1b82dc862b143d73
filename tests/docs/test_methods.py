"""The pages of the methods name every defense and every attack, with all parameters."""

from __future__ import annotations

import re

import pytest
import yaml
from paths import ROOT

from leakboard.bench.methods import registry

PAGES = ROOT / "docs" / "methods"
ATTACK = re.compile(r"^\| `([\w-]+)` \| (yes)? ?\| .+? \| .+? \| (.*?) ?\|$", re.MULTILINE)


def section(name: str) -> str:
    """The text about a defense: from its heading, or its bold name, to the next one."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(PAGES.glob("*.md")))
    return re.search(rf"\(`{name}`\)(.*?)(?=^## |^\*\*[^*]+\(`|\Z)", text, re.M | re.S)[1]


@pytest.mark.parametrize("defense", registry.defenses().values(), ids=lambda one: one.name)
def test_every_parameter_of_a_defense_is_explained_with_its_default(defense):
    told = re.findall(r"^\| `(\w+)` \| `(.+?)` \| .+ \|$", section(defense.name), re.MULTILINE)
    fields = defense.model_fields
    assert [name for name, _ in told] == list(fields)
    for name, default in told:
        assert yaml.safe_load(default) == fields[name].default or default == str(
            fields[name].default
        ), name


@pytest.mark.parametrize("defense", registry.defenses().values(), ids=lambda one: one.name)
def test_attacks_that_the_page_of_a_defense_names_exist(defense):
    known = {attack.name for attack in registry.attacks().values()}
    for line in re.findall(
        r"^- \*\*Attacks\*\*:(.*?)(?=^- \*\*)", section(defense.name), re.M | re.S
    ):
        named = set(
            re.findall(r"`([a-z]+(?:-[a-z]+)+|kmeans|norm|spectral|lira|rmia|unmix)`", line)
        )
        assert named - known == set()


def test_every_attack_is_explained_with_its_parameters_and_whether_it_is_costly():
    told = {
        name: (bool(costly), re.findall(r"`(\w+)`", parameters))
        for name, costly, parameters in ATTACK.findall((PAGES / "attacks.md").read_text("utf-8"))
    }
    assert told == {
        attack.name: (attack.costly, list(attack.model_fields))
        for attack in registry.attacks().values()
    }
