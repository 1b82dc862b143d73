"""Documents are short, in sentences that are read once, and linked from where a reader looks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from paths import ROOT

from leakboard.bench.contracts.glossary import GLOSSARY

DOCS = ROOT / "docs"
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
RESULTS = [ROOT / "results" / "README.md", ROOT / "results" / "published" / "README.md"]
PAGES = [*TOP, *RESULTS, *sorted(DOCS.rglob("*.md"))]
LONGEST = 35
"""Words of a sentence; most have fewer than 25."""
NOT_PROSE = (
    re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL),
    re.compile(r"<!-- (findings|claims|papers):.*?<!-- /\1 -->", re.DOTALL),
    re.compile(r"^(?: {4}|\t|\||#|:::|<|--8<).*$", re.MULTILINE),
)
"""Code, generated blocks, tables, headings and directives."""
PARAGRAPH = re.compile(r"\n\s*\n|^(?=[-*] |\d+\. |: )", re.MULTILINE)
SENTENCE = re.compile(r"(?<=[.!?:])[*)\"]*\s+")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sentences(text: str) -> Iterator[str]:
    for kind in NOT_PROSE:
        text = kind.sub("\n", text)
    for paragraph in PARAGRAPH.split(text):
        yield from (" ".join(one.split()) for one in SENTENCE.split(paragraph))


def test_the_readme_is_read_in_one_sitting():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_readme_quotes_at_most_three_findings_and_one_block():
    blocks = re.findall(
        r"<!-- findings:.*?<!-- /findings -->", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert len(blocks) == 1
    assert len(re.findall(r"^- ", blocks[0], re.MULTILINE)) <= 3


def test_the_two_commands_stand_in_the_readme_as_they_are_run():
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.search(r"^ {4}pip install tox && tox run -e smoke\b", text, re.MULTILINE)
    assert re.search(r"^ {4}tox run -e tests$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_sentence_is_too_long_to_be_read_once(page):
    # Definitions are the glossary's, word for word.
    quoted = " ".join(GLOSSARY.values())
    long = [one for one in sentences(page.read_text("utf-8")) if len(one.split()) > LONGEST]
    assert [one for one in long if one.rstrip(".") not in quoted] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_files_to_which_a_document_links_are_there(page):
    links = LINK.findall(page.read_text("utf-8"))
    # A page may be another file, whose links start where that file stands.
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_has_its_place_in_the_navigation():
    def pages(entries) -> Iterator[str]:
        for entry in entries:
            value = next(iter(entry.values())) if isinstance(entry, dict) else entry
            yield from pages(value) if isinstance(value, list) else [value]

    shown = sorted(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]))
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    # docs/rooms.py adds the pages of the rooms.
    assert shown == sorted(there - {"rooms/index.md"})
