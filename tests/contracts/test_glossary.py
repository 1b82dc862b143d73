"""A word has one definition, wherever it stands."""

from __future__ import annotations

import pytest
from paths import ROOT

from leakboard.bench.contracts.glossary import GLOSSARY, page
from leakboard.bench.scoring.certificates import NEEDED
from leakboard.leaderboards.tables.result import BUDGET

RESULTS, CODE = "results/README.md", "bench/contracts"
QUOTED = {
    "setting": [RESULTS],
    "success": [RESULTS],
    "chance": [CODE, RESULTS],
    "floor": [CODE],
    "baseline": [RESULTS],
    "ceiling": [CODE, RESULTS],
    "EP": [CODE, RESULTS],
    "advantage": [RESULTS],
    "leakage": [RESULTS],
}


@pytest.mark.parametrize(("word", "path"), [(w, p) for w, paths in QUOTED.items() for p in paths])
def test_a_definition_stands_in_code_and_documents_as_the_glossary_has_it(word, path):
    files = sorted((ROOT / path).glob("*.py")) or [ROOT / path]
    texts = [" ".join(one.read_text("utf-8").split()) for one in files if one.stem != "glossary"]
    meaning = GLOSSARY[word].rstrip(".")
    # Behind a colon a sentence goes on, and some begin with a formula.
    ways = meaning, meaning[0].lower() + meaning[1:]
    assert any(way in text for way in ways for text in texts), (
        f"{path} defines '{word}' in words of its own"
    )


def test_the_page_of_the_documentation_is_the_glossary():
    assert (ROOT / "docs" / "glossary.md").read_text("utf-8") == page()


def test_the_numbers_in_definitions_are_those_of_the_code():
    assert f"clearly above {NEEDED:g}" in GLOSSARY["certified"]
    assert f"at most {BUDGET:g} points" in GLOSSARY[f"leakage within {BUDGET:g} points"]
