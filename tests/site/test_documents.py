"""The documentation inside the site: each leads to the other, from every page, without a network."""

from __future__ import annotations

import re

import pytest
from paths import ROOT
from records import record
from site_records import kept
from typer.testing import CliRunner

from leakboard.bench.cli import app
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.site.build import BANNER_HIDDEN, publish

BACK = '<div{} class="md-banner"><a href="{}/../index.html">the board</a></div>'


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    """A documentation of two pages, as its theme makes them."""
    place = tmp_path_factory.mktemp("built") / "docs"
    (place / "api" / "deep").mkdir(parents=True)
    for path, base in (("index.html", "."), ("api/deep/index.html", "../..")):
        (place / path).write_text(f"<p>{path}</p>" + BACK.format(BANNER_HIDDEN, base))
    (place / "style.css").write_text(f"/*{BANNER_HIDDEN} */")
    return place


@pytest.fixture(scope="module")
def joined(tmp_path_factory, docs):
    place = tmp_path_factory.mktemp("joined")
    publish([kept(place / "records", [record()])], place / "site", docs)
    return place / "site"


def links(page):
    return {
        page.parent.joinpath(to).resolve()
        for to in re.findall(r'href="([^"#:]+)"', page.read_text("utf-8"))
    }


def test_every_page_of_the_board_leads_to_the_documentation_and_every_page_there_back(joined):
    board = [path for path in joined.rglob("*.html") if joined / "docs" not in path.parents]
    documents = list((joined / "docs").rglob("*.html"))
    assert len(board) > 10
    assert len(documents) == 2
    for page in board:
        assert joined / "docs" / "index.html" in links(page), page
    for page in documents:
        assert joined / "index.html" in links(page), page
        assert BANNER_HIDDEN not in page.read_text("utf-8")
    # What is no page stays as it was built.
    assert BANNER_HIDDEN in (joined / "docs" / "style.css").read_text("utf-8")


def test_without_a_documentation_no_page_leads_to_one(site):
    assert not (site / "docs").exists()
    for page in site.rglob("*.html"):
        assert site / "docs" / "index.html" not in links(page)


def test_a_folder_that_holds_no_documentation_is_an_error_that_says_how_to_build_one(tmp_path):
    folder = kept(tmp_path / "records", [record()])
    with pytest.raises(LeakboardError, match=r"nowhere holds no index\.html; `tox run -e docs`"):
        publish([folder], tmp_path / "site", tmp_path / "nowhere")
    words = ["publish", str(folder), "--to", str(tmp_path / "site"), "--docs", str(tmp_path)]
    assert "holds no index.html" in str(CliRunner().invoke(app, words).exception)
    assert not (tmp_path / "site").exists()


def test_the_theme_of_the_documentation_holds_the_link_that_is_shown_beside_a_board():
    theme = (ROOT / "docs" / "theme" / "main.html").read_text("utf-8")
    shown = [line for line in theme.splitlines() if "md-banner" in line and BANNER_HIDDEN in line]
    assert len(shown) == 1
    assert 'href="{{ base_url }}/../index.html"' in shown[0]
