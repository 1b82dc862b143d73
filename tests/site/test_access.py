"""Whether everybody can use the site: what axe-core finds on its pages, in both colour schemes."""

from __future__ import annotations

import pytest
from site_records import plain_records

GRAVE = {"serious", "critical"}
"""Impacts, as axe-core calls them, that keep somebody from using a page."""
HOW = {"resultTypes": ["violations"], "preload": False}
"""Without asking for style sheets once more, which a page from disk may not."""
PAGES = [
    *("index.html", "findings.html", "methods.html", "records.html"),
    *("defenses/sap.html", "attacks/logit-gradient.html"),
]


@pytest.fixture(scope="module")
def faults():
    """Gives the grave faults of a page, each with the first place where it is."""
    reason = "axe-playwright-python is not installed"
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason).Axe()

    def found(page):
        told = axe.run(page, options=HOW).response["violations"]
        return [
            f"{one['id']} ({len(one['nodes'])}): {one['nodes'][0]['html']}"
            for one in told
            if one["impact"] in GRAVE
        ]

    return found


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(open_page, expect, site, faults, scheme, width):
    page, key = open_page(scheme=scheme, width=width), plain_records()[0].key
    for path in [*PAGES, f"records.html#{key}"]:
        page.goto(f"file://{site}/{path}")
        if path.endswith(key):
            expect(page.locator("#record h2")).to_contain_text(key)
        assert faults(page) == [], path


def test_axe_finds_a_fault_that_is_there(open_page, faults):
    page = open_page("methods.html")
    page.evaluate("document.querySelector('dd').style.color = '#eee'")
    assert any(fault.startswith("color-contrast") for fault in faults(page))
