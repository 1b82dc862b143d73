"""A site of 6,000 records: every page is there, and what is read first stays light."""

from __future__ import annotations

import re

import pytest
from records import leak, record
from site_records import kept

from leakboard.bench.contracts.threat import Goal
from leakboard.leaderboards.site import making, pictures
from leakboard.leaderboards.site.build import publish

SEEDS = 1500
HEAVIEST = 1_000_000
"""Bytes of a page that a reader opens first, with all that it loads."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Four settings under 1,500 seeds each, without figures for papers."""
    place = tmp_path_factory.mktemp("many")

    def cells(seed):
        label = leak(0.9, "spectral", Goal.LABEL, 0.5)
        yield record("none", {}, seed, 0.9, [leak(1.0), label], undefended=True)
        for defense, params, success in (("sap", {"eta": 50.0}, 0.3), ("sap", {"eta": 90.0}, 0.6)):
            yield record(defense, params, seed, 0.85, [leak(success), label])
        yield record("frozen", {}, seed, 0.6, [leak(0.7), label])

    with pytest.MonkeyPatch.context() as patched:
        for name in ("of_panel", "goals", "memory", "training"):
            patched.setattr(pictures, name, lambda *_, **__: [])
        # To force each file out to the disk would take longer than all the rest.
        patched.setattr("leakboard.bench.records.store.os.fsync", lambda _: None)
        folder = kept(place / "records", [one for seed in range(SEEDS) for one in cells(seed)])
        patched.setattr(making.Drawing, "begin", lambda *_: None)
        made = publish([folder], place / "site")
    return place / "site", made


def test_each_of_6000_records_has_its_page_and_its_row(many):
    site, made = many
    pages = {path.stem for path in (site / "records").glob("*.html")}
    listed = re.findall(r'href="records/(\w+)\.html"', (site / "records.html").read_text("utf-8"))
    assert len(pages) == 4 * SEEDS
    assert sorted(listed) == sorted(pages)
    assert made.pages == len(list(site.rglob("*.html")))


def test_what_is_read_first_stays_light_however_many_seeds_there_are(many):
    site, _ = many
    for path in ("index.html", "boards.html", "tasks/reviews.html", "compare.html"):
        text = (site / path).read_text("utf-8")
        loaded = {site / name for name in re.findall(r'(?:src|href)="(assets/[^"]+)"', text)}
        assert sum(one.stat().st_size for one in loaded) + len(text.encode()) < HEAVIEST, path
    assert f"{4 * SEEDS} records" in (site / "index.html").read_text("utf-8")


def test_a_table_of_6000_rows_can_be_searched_and_sorted(many, browser):
    page = browser.new_context(offline=True).new_page()
    page.set_default_timeout(180_000)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"file://{many[0] / 'records.html'}")
    told = page.locator("#records output")
    assert told.inner_text() == f"{4 * SEEDS} of {4 * SEEDS}"
    page.locator("#records input[type=search]").fill("frozen")
    assert told.inner_text() == f"{SEEDS} of {4 * SEEDS}"
    page.locator("#records th", has_text="seed").get_by_role("button").click()
    shown = "r => !r.hidden && r.cells[6].textContent.trim()"
    seeds = page.evaluate(f"[...document.querySelectorAll('#records tbody tr')].map({shown})")
    numbers = [int(seed) for seed in seeds if seed is not False]
    assert numbers == list(range(SEEDS))
    assert errors == []
    page.context.close()
