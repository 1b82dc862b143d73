"""Archives from outside: nothing hostile does harm."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from submitted import RECORDS, manifest, members, raw, resealed, verdict, why, zipped

from leakboard.bench.contracts.cell import Cell
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.outside import Refused, parsed, visible
from leakboard.bench.records.store import to_text
from leakboard.bench.submissions import archive as submissions
from leakboard.bench.submissions.verification import verify

BOMB = b"0" * (submissions.MEMBER + 2**20)


def test_a_bomb_is_stopped_while_it_is_read(place):
    named = [*members(raw(RECORDS[:1]))[:1], ("records/" + "0" * 16 + ".json", BOMB)]
    packed = zipped(named)
    assert len(packed) < 10**6
    assert "unpacks to more than" in why(verdict(place, packed))


def test_no_more_is_unpacked_than_is_taken():
    class Endless:
        def read(self, size=-1):
            assert 0 <= size <= submissions.MEMBER + 1
            return b"0" * size

    with pytest.raises(Refused, match="unpacks to more than"):
        submissions._read_bounded(Endless(), 0)
    with pytest.raises(Refused, match="128 in all"):
        submissions._read_bounded(io.BytesIO(b"0" * 10), submissions.WHOLE)


def test_a_bomb_with_a_header_that_lies_is_stopped(place):
    packed = bytearray(zipped([("manifest.json", BOMB)]))
    real, lie = struct.pack("<L", len(BOMB)), struct.pack("<L", 10)
    assert packed.count(real) == 2  # of the member, and of the directory
    report = verdict(place, bytes(packed.replace(real, lie)))
    assert "cannot be unpacked" in why(report) or "not JSON" in why(report)


@pytest.mark.parametrize(
    "name",
    ["../evil.json", "/etc/passwd", "records/../../x.json", "records\\0123456789abcdef.json", "C:\\x",
     "records/0123456789abcdef.json\x00.exe", "records/0123456789ABCDEF.json", "records/", "x/y/z",
     "records/0123456789abcdef.json/", "manifest.json/../x", "records/0123456789abcdef.json\n",
     "\u202emanifest.json", "[red]x[/blue].json", ""],
)  # fmt: skip
def test_no_other_name_is_taken(place, name):
    report = verdict(place, zipped([*members(raw(RECORDS)), (name, b"{}")]))
    assert "only manifest.json and records/" in why(report)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(place, kind):
    assert "as a link" in why(verdict(place, zipped(members(raw(RECORDS)), mode=kind | 0o777)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_stands_twice_is_refused(place):
    named = members(raw(RECORDS))
    assert "twice" in why(verdict(place, zipped([*named, named[-1]])))


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_compress_are_refused(place, kind):
    assert "unusual" in why(verdict(place, zipped(members(raw(RECORDS)), kind=kind)))


def test_a_directory_of_a_million_entries_is_refused_before_it_is_read(place):
    end = submissions.END.pack(b"PK\x05\x06", 0, 0, 1, 1, 2**25, 0, 0)
    assert "holds more than" in why(verdict(place, b"\0" * 2**20 + end))


def test_a_directory_that_stands_elsewhere_is_refused_before_it_is_read(place):
    end = submissions.END.pack(b"PK\x05\x06", 0, 0, 1, 1, 46, 0, 0)
    assert "ZIP64" in why(verdict(place, submissions.ZIP64 + b"\0" * 16 + end))


def test_a_large_file_is_refused_unread(place):
    file = place / "given.zip"
    with file.open("wb") as out:
        out.truncate(submissions.FILE + 1)
    assert "larger than" in why(verify(file))


def test_no_such_file_is_bad_input(place):
    with pytest.raises(LeakboardError, match="no such file"):
        verify(place / "absent.zip")


@pytest.mark.parametrize(
    "text",
    ['{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', '{"a": 1, "a": 2}', "[" * 10**5, '"\\ud800"',
     "[" * 14 + "]" * 14, "1" * 5000, str(2**63), '"\\u202e"', '"\\u001b[2J"', '{"\\u0000": 1}',
     '"' + "a" * 10_001 + '"', "\ufeff{}", ""],
)  # fmt: skip
def test_json_that_would_trip_others_is_refused(text):
    with pytest.raises(Refused):
        parsed(text.encode(), "it")


def test_what_people_write_is_not_refused():
    for text in ("naïve café 漢字", "می‌خواهم", "👩‍💻", "<script>alert(1)</script>", "[red]"):
        assert visible(text) == text
        assert parsed(json.dumps({text: [text]}).encode(), "it") == {text: [text]}


strange = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=20),
    st.sampled_from([
        "<script>alert(1)</script>", "../../etc/passwd", "[/red]", "\x1b]0;x\x07", "\u202egnp.exe",
        "{{7*7}}", "${jndi:ldap://x}", "\ud800", 10**5000 % 10**400, float("nan"), 1e308, [], {},
        "a" * 20_000, [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], {"__class__": 1}, -1, 2**63, True,
    ]),
    st.lists(st.integers(-5, 2**65), max_size=4), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


def places(value, at=()):
    """The ways to every value inside a JSON value."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, x in list(inside)[:30]:
        yield (*at, key)
        yield from places(x, (*at, key))


SAMPLE = json.loads(to_text(RECORDS[0]))
WAYS = list(places(SAMPLE))
MANIFEST_WAYS = list(places(json.loads(manifest(raw(RECORDS[:1])))))


def put(value, way, new, how):
    value = json.loads(json.dumps(value))
    at = value
    for step in way[:-1]:
        at = at[step]
    if how == "remove":
        del at[way[-1]]
    elif how == "add" and isinstance(at, dict):
        at[str(new)[:50]] = new
    else:
        at[way[-1]] = new
    return value


@given(st.data())
@settings(max_examples=1000 if os.environ.get("LEAKBOARD_FUZZ") == "full" else 300)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_submissions_are_refused_or_harmless(place, data):
    draw, before = data.draw, sorted(place.parent.iterdir())
    kind = draw(st.sampled_from(["record", "record", "manifest", "bytes", "members", "noise"]))
    content = raw(RECORDS[:1])
    key = RECORDS[0].key
    named = members(content)
    if kind == "record":
        value = put(SAMPLE, draw(st.sampled_from(WAYS)), draw(strange), draw(st.sampled_from(["set", "remove", "add"])))  # fmt: skip
        try:
            if draw(st.booleans()):  # as a forger would who knows the program
                value["key"] = Cell.model_validate(value["cell"]).key
            sealed = resealed(value)
        except (ValueError, KeyError, TypeError, OverflowError):
            sealed = json.dumps(value).encode("utf-8", "replace")
        name = value["key"] if isinstance(value.get("key"), str) else key
        content = {name if len(name) == 16 else key: sealed}
        try:
            named = members(content)
        except UnicodeEncodeError:
            named = members({key: sealed})
    elif kind == "manifest":
        value = put(json.loads(named[0][1]), draw(st.sampled_from(MANIFEST_WAYS)), draw(strange), draw(st.sampled_from(["set", "remove", "add"])))  # fmt: skip
        named[0] = ("manifest.json", json.dumps(value).encode("utf-8", "replace"))
    elif kind == "members":
        name = draw(
            st.one_of(st.text(max_size=30), st.sampled_from(["../x", "/x", "manifest.json"]))
        )
        named.insert(
            draw(st.integers(0, 2)), (name.encode("utf-8", "ignore").decode(), b"[" * 5000)
        )
    packed = bytearray(zipped(named, draw(st.sampled_from([0, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR])) if kind == "members" else stat.S_IFREG))  # fmt: skip
    if kind == "bytes":
        for _ in range(draw(st.integers(1, 8))):
            packed[draw(st.integers(0, len(packed) - 1))] = draw(st.integers(0, 255))
        del packed[draw(st.one_of(st.just(len(packed)), st.integers(0, len(packed)))) :]
    if kind == "noise":
        packed = bytearray(draw(st.binary(max_size=200)))
    report = verdict(place, bytes(packed))
    assert report.sound or why(report)
    assert sorted(place.parent.iterdir()) == before
    if report.sound:  # then it says what the honest one says
        for found in report.records:
            assert found.utility == RECORDS[0].utility
            # What does not apply may be absent.
            ran = [[leak for leak in r.leaks if leak.success] for r in (found, RECORDS[0])]
            for one, other in zip(*ran, strict=True):
                assert abs(one.success.value - other.success.value) < 1e-5
