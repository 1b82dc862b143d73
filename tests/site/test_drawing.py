"""Figures of the site are drawn in processes of their own, which end with it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from leakboard.leaderboards.site.content import Content
from records import record
from site_records import digests, kept

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.site import drawing, pictures
from leakboard.leaderboards.site.build import publish
from leakboard.leaderboards.site.collection import collect


def test_figures_drawn_beside_are_those_that_are_drawn_here(site, sources, tmp_path):
    panel = Content(collect(sources)).panels[0]
    for path in pictures.of_panel(panel, tmp_path / panel.name):
        assert path.read_bytes() == (site / "figures" / path.name).read_bytes()


def test_publishing_leaves_the_process_as_it_was_even_on_one_cpu(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "cpu_count", lambda: 1)
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    publish([kept(tmp_path / "mine", [record()])], tmp_path / "site")
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before
    assert list((tmp_path / "site" / "figures").glob("reviews.*.svg"))


def test_figures_of_a_relative_folder_stand_in_it_wherever_their_processes_began(
    tmp_path, monkeypatch
):
    folder = kept(tmp_path / "mine", [record()])
    for name in ("first", "second"):  # the processes stay where the first one has them begin
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        publish([folder], Path("site"))
        assert list(Path("site/figures").glob("reviews.*.svg"))
        assert [path.name for path in (tmp_path / name).iterdir()] == ["site"]


def test_where_a_process_that_draws_is_ended_the_old_site_stays_whole(copied, other, monkeypatch):
    before = digests(copied)
    monkeypatch.setattr(pictures, "of_panel", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(LeakboardError, match="ended from outside"):
        publish(other, copied)
    assert digests(copied) == before
    monkeypatch.undo()
    publish(other, copied)  # with new processes
    assert digests(copied) != before


def test_processes_that_draw_end_with_their_maker():
    code = (
        "import os, time; from leakboard.leaderboards.site.drawing import _processes; made = _processes(); "
        "print(made.submit(os.getpid).result(), flush=True); "
        "busy = [made.submit(time.sleep, 600) for _ in range(4)]; time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        drawer = psutil.Process(int(maker.stdout.readline()))
        maker.kill()
    drawer.wait(timeout=20)


def test_processes_that_draw_do_not_load_what_takes_longer_than_a_figure():
    code = (
        "import sys; from importlib import import_module; from leakboard.leaderboards.site.drawing import DRAW; "
        "[import_module(name) for name in DRAW]; print({'torch', 'scipy.special'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
