"""A site of few records, built once."""

from __future__ import annotations

import shutil

import pytest
from records import record
from shared_folders import shared_folder
from site_records import EVIL, LINK, hostile_records, kept, over_time, plain_records

from leakboard.bench.records.store import MANIFEST
from leakboard.bench.submissions.packing import Entry, Manifest
from leakboard.leaderboards.site.build import publish

PATIENCE = 180_000
"""Milliseconds that a page may take, since a loaded machine must not fail a test."""


def write_sources(place):
    made = {"plain": plain_records(), "hostile": hostile_records(), "time": over_time()}
    for name, records in made.items():
        kept(place / name, records)
    entries = {one.key: Entry(suite="smoke", sha256="0" * 64) for one in made["hostile"]}
    told = Manifest(method=EVIL, note=f"note {EVIL}", link=LINK, records=entries)
    (place / "hostile" / MANIFEST).write_text(told.model_dump_json())


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    place = shared_folder(tmp_path_factory, "records-of-a-site", write_sources)
    return [place / name for name in ("plain", "hostile", "time")]


@pytest.fixture(scope="session")
def site(tmp_path_factory, sources):
    return shared_folder(tmp_path_factory, "www", lambda to: publish(sources, to / "site")) / "site"


@pytest.fixture
def other(tmp_path):
    """Few records, of which a site is built quickly."""
    return [kept(tmp_path.with_name(f"{tmp_path.name}-records"), [record()])]


@pytest.fixture
def copied(site, tmp_path):
    return shutil.copytree(site, tmp_path / "site")


@pytest.fixture(scope="module")  # its event loop would stand in the way of other tests
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def expect(browser):
    """Playwright's assertions, which wait until they hold: what a click or a key brings comes later."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return expect


@pytest.fixture
def open_page(browser, site):
    """Opens pages of the site without a network; at the end no error may have been logged."""
    contexts, errors = [], []

    def own(address):
        return address.startswith((f"file://{site}/", "data:", "blob:"))

    def opened(path="index.html", width=1280, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=True,
            java_script_enabled=scripts,
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda told: told.type == "error" and errors.append(told.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.on("request", lambda asked: own(asked.url) or errors.append(asked.url))
        page.goto(f"file://{site / path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
