"""A word means the same in code, documents and on the site: one sentence, wherever it stands."""

from __future__ import annotations

import pytest
from paths import ROOT

from leakboard.bench.contracts.glossary import GLOSSARY, explained, page
from leakboard.bench.scoring.certificates import NEEDED
from leakboard.leaderboards.figures.kinds.goals import NOTE
from leakboard.leaderboards.site.front import SYMBOLS
from leakboard.leaderboards.tables.standing import IDLE
from leakboard.leaderboards.tables.verdicts import Verdict

LEAK, RESULTS = "bench/contracts/record.py", "results/README.md"
VERDICTS = "leaderboards/tables/verdicts.py"
QUOTED = {
    "success": [RESULTS],
    "chance": ["bench/contracts/record.py", RESULTS],
    "floor": [LEAK],
    "level": [LEAK, RESULTS],
    "ceiling": [LEAK, RESULTS],
    "EP": [LEAK, RESULTS],
    "advantage": [LEAK, RESULTS],
    "above": [LEAK, RESULTS],
    "privacy": ["leaderboards/tables/matrix.py", RESULTS],
    "leak": [RESULTS],
    "cost": [RESULTS],
    "strongest": ["leaderboards/tables/deciding.py", RESULTS],
    **{word: [VERDICTS] for word in Verdict},
}


@pytest.mark.parametrize(("word", "path"), [(w, p) for w, paths in QUOTED.items() for p in paths])
def test_a_definition_stands_in_code_and_documents_as_the_glossary_has_it(word, path):
    text = " ".join((ROOT / path).read_text("utf-8").split())
    meaning = GLOSSARY[word]
    # Behind a colon a sentence goes on, and some begin with a formula.
    assert meaning.rstrip(".") in text, f"{path} defines '{word}' in words of its own"


def test_figures_say_what_privacy_is_in_the_same_words():
    assert GLOSSARY["privacy"] in NOTE


def test_the_page_of_the_documentation_is_the_glossary():
    assert (ROOT / "docs" / "glossary.md").read_text("utf-8") == page()


def test_every_word_of_the_matrix_is_explained_with_the_bars_that_decide_it():
    assert {*Verdict} <= GLOSSARY.keys()
    assert {*Verdict} == SYMBOLS.keys()
    assert f"at least {IDLE:g} of the privacy" in GLOSSARY["protects"]
    assert f"at least {NEEDED:g} of the privacy" in GLOSSARY["partly"]
    assert f"Below {NEEDED:g} there is none" in GLOSSARY["certificate"]


def test_the_name_of_a_column_is_explained_word_by_word():
    assert explained("EP, strongest") == f"{GLOSSARY['EP']} {GLOSSARY['strongest']}"
    assert explained("EP at chance") == f"{GLOSSARY['EP']} {GLOSSARY['chance']}"
    assert explained("seeds") == ""
