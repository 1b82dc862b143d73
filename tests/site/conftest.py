"""A site of few records, built once."""

from __future__ import annotations

import shutil

import pytest
from records import record
from site_records import EVIL, LINK, hostile_records, kept, over_time, plain_records

from bench.records.store import MANIFEST
from bench.submissions.packing import Entry, Manifest
from leaderboards.site import pictures
from leaderboards.site.build import publish


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    place = tmp_path_factory.mktemp("records")
    made = {"plain": plain_records(), "hostile": hostile_records(), "time": over_time()}
    folders = [kept(place / name, records) for name, records in made.items()]
    entries = {one.key: Entry(suite="smoke", sha256="0" * 64) for one in made["hostile"]}
    told = Manifest(method=EVIL, note=f"note {EVIL}", link=LINK, records=entries)
    (place / "hostile" / MANIFEST).write_text(told.model_dump_json())
    return folders


@pytest.fixture(scope="module")
def site(tmp_path_factory, sources):
    to = tmp_path_factory.mktemp("www") / "site"
    publish(sources, to)
    return to


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Few records, of which a site is built quickly, without figures for papers."""
    monkeypatch.setattr(pictures, "of_panel", lambda *_: [])
    return [kept(tmp_path.with_name(f"{tmp_path.name}-records"), [record()])]


@pytest.fixture
def copied(site, tmp_path):
    return shutil.copytree(site, tmp_path / "site")
