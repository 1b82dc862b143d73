"""Records on disk: whole or not at all, and never silently wrong."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records import estimate, leak, record

from leakboard.bench.contracts.cell import digest
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.record import SCHEMA, Cost, Record
from leakboard.bench.records.store import Corrupt, Store, collector_paused, from_text, to_text

UNWRITTEN = {"sha256", "certificate"}
"""What a later version need not write again: the checksum, and what it derives."""
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))

floats = st.floats(allow_nan=False, allow_infinity=False)
small = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "records")


whole_numbers = st.lists(st.integers() | st.booleans() | st.none())
values = st.recursive(
    whole_numbers
    | floats
    | st.text(st.characters(codec="utf-8"))
    | st.sampled_from(["\0", [[], 1]]),
    lambda own: st.lists(own) | st.dictionaries(st.text(st.characters(codec="utf-8")), own),
)


@given(values)
def test_digest_is_that_of_sorted_json_without_spaces(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest(value) == hashlib.sha256(text.encode()).hexdigest()


def test_a_text_that_is_the_mark_of_a_list_does_not_change_the_digest():
    value = {"a": "\0", "b": [1, 2], "\0": [3]}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert digest(value) == hashlib.sha256(text.encode()).hexdigest()


def test_objects_made_while_the_collector_is_paused_are_of_the_oldest_generation(monkeypatch):
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)  # another test may hold frozen objects
    with collector_paused():
        made = [[] for _ in range(1000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert {id(own) for own in made} <= {id(own) for own in gc.get_objects(generation=2)}


@given(floats, floats, st.integers(-(2**70), 2**70), st.text(st.characters(codec="utf-8")))
@small
def test_record_comes_back_exactly_as_it_was(tmp_path, value, high, whole, text):
    original = record(
        params={"eta": value, "n": whole, "s": text, "none": None, "list": [high, 1, True]},
        status="failed",
        reason=text,
        leaks=[leak(raw={"hits": [0, 1, whole]}), leak(None, status="failed", reason=text)],
        loss=[value, high],
    ).model_copy(update={"utility": estimate(0.5).model_copy(update={"value": value})})
    store = Store(tmp_path)
    path = store.write(original)
    again = store.read(original.key)
    assert again == original
    # Equality takes 0.0 for −0.0 and 1 for True; the text does not.
    assert to_text(again) == path.read_text("utf-8")


def test_not_a_number_cannot_enter_a_record():
    with pytest.raises(ValueError, match="finite"):
        record(utility=float("nan"))


def test_key_is_that_of_the_content(store):
    keys = {
        record(**change).key
        for change in (
            {}, {"params": {"eta": 1}}, {"params": {"eta": 2}}, {"seed": 1}, {"limit": None},
            {"task": "x"}, {"model": "x"}, {"cut": 1}, {"epochs": 3}, {"defense": "none"},
        )
    }  # fmt: skip
    assert len(keys) == 10
    assert record().key == record().key
    assert store.path("k") == store.folder / "k.json"


def test_nothing_is_read_where_nothing_is(store):
    assert store.read("0" * 16) is None
    assert store.read_all() == []


# Damage


def damaged(path, how):
    text = path.read_text("utf-8")
    if how == "empty":
        path.write_text("")
    elif how == "truncated":
        path.write_text(text[: len(text) // 2])
    elif how == "flipped":
        path.write_text(text.replace('"seed": 0', '"seed": 1'))
    elif how == "number":
        path.write_text(text.replace('"value": 0.9', '"value": 0.8'))
    elif how == "renamed":
        path.rename(path.with_name("0" * 16 + ".json"))
        return path.with_name("0" * 16 + ".json")
    elif how == "binary":
        path.write_bytes(b"\x00\xff" * 40)
    elif how == "list":
        path.write_text("[]")
    elif how == "no checksum":
        content = json.loads(text)
        del content["sha256"]
        path.write_text(json.dumps(content))
    elif how == "unknown key":
        content = json.loads(text) | {"extra": 1}
        del content["sha256"]
        path.write_text(json.dumps(content | {"sha256": digest(content)}))
    elif how == "key of another cell":
        content = json.loads(text)
        del content["sha256"]
        content["cell"]["seed"] = 5
        path.write_text(json.dumps(content | {"sha256": digest(content)}))
    return path


HOW = ["empty", "truncated", "flipped", "number", "renamed", "binary", "list", "no checksum",
       "unknown key", "key of another cell"]  # fmt: skip


@pytest.mark.parametrize("how", HOW)
def test_damaged_record_is_told_apart_and_left_where_it_is(store, how):
    store.write(record(seed=1))
    path = damaged(store.write(record()), how)
    before = path.read_bytes()
    with pytest.raises(Corrupt):
        store.read(path.stem)
    assert [r.cell.seed for r in store.read_all()] == [1]
    assert len(store.problems) == 1
    assert store.problems[0].startswith(f"{path}: ")
    assert path.read_bytes() == before


def test_json_that_is_no_record_is_not_called_damaged(store):
    store.write(record())
    (store.folder / "notes.json").write_text('{"hello": 1}')
    assert len(store.read_all()) == 1
    assert store.problems == [f"{store.folder / 'notes.json'}: not a record (no key, no cell)"]


@given(st.data())
@settings(max_examples=60)
def test_no_single_flipped_bit_gives_another_record(tmp_path_factory, data):
    original = record()
    folder = tmp_path_factory.mktemp("flip")
    path = Store(folder).write(original)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with suppress(Corrupt, LeakboardError):
        assert from_text(path) == original  # a space that became another one


def test_record_set_aside_is_kept_and_no_longer_read(store):
    path = damaged(store.write(record()), "truncated")
    before = path.read_bytes()
    place = store.set_aside(path.stem)
    assert place.read_bytes() == before
    assert not path.exists()
    assert store.read_all() == []
    assert store.problems == []


def test_record_of_a_later_schema_is_refused_with_advice_and_untouched(store):
    path = store.write(record())
    content = json.loads(path.read_text()) | {"schema_version": SCHEMA + 1, "new": "thing"}
    path.write_text(json.dumps(content))
    before = path.read_bytes()
    for read in (lambda: store.read(path.stem), store.read_all):
        with pytest.raises(
            LeakboardError, match=f"schema {SCHEMA + 1}.*Upgrade leakboard, or .*--out"
        ):
            read()
    assert path.read_bytes() == before


# Writing


def full(*_args, **_kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["os.fsync", "pathlib.Path.open", "pathlib.Path.replace"])
def test_full_disk_is_told_and_harms_nothing(store, where, monkeypatch):
    old = store.write(record())
    before = old.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(where, full)
        for new in (record(seed=1), record(reason="again")):
            with pytest.raises(LeakboardError, match=r"No space left on device.*free some space"):
                store.write(new)
    assert [path.name for path in store.folder.iterdir()] == [old.name]
    assert old.read_bytes() == before


def test_disk_that_fills_up_for_real_leaves_no_part_of_a_record(store, monkeypatch):
    # /dev/full takes no byte; a link to it stands where the temporary file would.
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    store.folder.mkdir()
    name = uuid4()
    monkeypatch.setattr("leakboard.bench.records.store.uuid4", lambda: name)
    (store.folder / f"{record().key}.{name.hex}.tmp").symlink_to("/dev/full")
    with pytest.raises(LeakboardError, match="No space left on device"):
        store.write(record())
    assert list(store.folder.iterdir()) == []


def test_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(LeakboardError, match="could not be written"):
        Store(tmp_path / "file").write(record())
    assert (tmp_path / "file").read_text() == "mine"


def test_record_is_on_disk_before_it_gets_its_name(store, monkeypatch):
    order, fsync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda a, b: (order.append("replace"), replace(a, b))[1])
    store.write(record())
    assert order == ["fsync", "replace"]


def test_temporary_file_is_never_read_as_a_record(store):
    path = store.write(record())
    (store.folder / f"{path.stem}.123.tmp").write_text(path.read_text()[:50])
    assert len(store.read_all()) == 1
    assert store.problems == []


# Old and published files


def test_there_is_a_golden_record_of_every_schema():
    assert {json.loads(p.read_text())["schema_version"] for p in GOLDEN} == set(
        range(1, SCHEMA + 1)
    )


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_golden_record_is_still_read_with_its_key_and_checksum(path):
    found = from_text(path)
    assert found.cell.key == found.key == path.stem
    assert found.status == "ok"
    assert {x.attack.name for x in found.leaks} == {"eia-nn", "logit-gradient", "prior"}
    # Later versions may add fields; what stood in the file comes out as it was.
    assert _within(json.loads(path.read_text("utf-8")), json.loads(to_text(found)))


def _within(old, new):
    """Whether every value of `old`, but those of UNWRITTEN, stands in `new` at the same place."""
    if isinstance(old, dict):
        return all(key in UNWRITTEN or _within(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(_within, old, new))
    return old == new


def test_golden_record_has_every_field_but_those_that_were_added_with_a_default():
    fields = Record.model_fields
    for path in GOLDEN:
        known = json.loads(path.read_text()).keys() - {"sha256"}
        assert known <= fields.keys()
        assert not any(fields[name].is_required() for name in fields.keys() - known)


def test_a_record_without_the_cost_of_a_bottom_is_still_read():
    older = {
        "bytes_up": 1,
        "bytes_down": 1,
        "trained_parameters": 1,
        "train_seconds": 1.0,
        "attack_seconds": 1.0,
        "total_seconds": 1.0,
        "peak_megabytes": 1.0,
    }
    assert Cost(**older).bottom is None
