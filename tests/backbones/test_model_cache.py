"""The cache of models: what is half written, of another version, unwritable or written by two at once is never used."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from leakboard.bench.backbones.model_cache import cache_folder, cached_folder
from leakboard.bench.contracts import LeakboardError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder()


def write(text):
    return lambda folder: (folder / "weights").write_text(text)


def refuse(folder):
    raise AssertionError("the cache has it")


def full(folder):
    (folder / "weights").write_text("ha")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_it_is_made_once():
    folder = cached_folder("m", "m-1", write("whole"))
    assert cached_folder("m", "m-1", refuse) == folder
    assert (folder / "weights").read_text() == "whole"


def test_another_version_is_made_anew():
    cached_folder("m", "m-1", write("old"))
    assert (cached_folder("m", "m-2", write("new")) / "weights").read_text() == "new"


def test_what_a_killed_process_left_is_not_used(cache):
    left = cache / "unfinished-x" / "m-1"
    left.mkdir(parents=True)
    (left / "weights").write_text("ha")
    assert (cached_folder("m", "m-1", write("whole")) / "weights").read_text() == "whole"


def test_what_a_process_left_a_day_ago_is_removed_and_what_may_be_at_work_stays(cache):
    for name, hours in (("unfinished-old", 25), ("unfinished-new", 23)):
        (cache / name).mkdir(parents=True)
        then = time.time() - hours * 3600
        os.utime(cache / name, (then, then))
    cached_folder("m", "m-1", write("whole"))
    assert {path.name for path in cache.iterdir()} == {"unfinished-new", "m-1"}


def test_a_full_disk_is_named_and_leaves_nothing(cache):
    with pytest.raises(LeakboardError, match=r"m-1 cannot be written \(No space left.*Make room"):
        cached_folder("m", "m-1", full)
    assert not list(cache.iterdir())
    assert (cached_folder("m", "m-1", write("whole")) / "weights").read_text() == "whole"


def test_a_cache_that_cannot_be_written_is_named(cache, monkeypatch):
    def read_only(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    cached_folder("m", "m-1", write("whole"))
    monkeypatch.setattr("tempfile.mkdtemp", read_only)
    with pytest.raises(LeakboardError, match=r"Read-only file system.*XDG_CACHE_HOME"):
        cached_folder("m", "m-2", write("whole"))
    assert (cached_folder("m", "m-1", refuse) / "weights").read_text() == "whole"


def test_of_two_that_make_it_at_once_the_first_is_used():
    def slower(folder):
        cached_folder("m", "m-1", write("first"))
        write("second")(folder)

    assert (cached_folder("m", "m-1", slower) / "weights").read_text() == "first"
    assert [path.name for path in Path(cache_folder()).iterdir()] == ["m-1"]
