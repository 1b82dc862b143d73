"""The process that runs a cell again has no network and can change no file but its temporary ones."""

from __future__ import annotations

import json
import pickle
import socket
from multiprocessing import Pipe, get_context
from pathlib import Path

import pytest
from sandboxed import attempts, reply

from leakboard.bench.running import Reporter
from leakboard.bench.submissions import sandbox
from leakboard.bench.submissions.cell_process import Child, Limit, NotRun
from leakboard.bench.submissions.sandbox import pack, work_inside


def events_of(place, hidden, work, *arguments):
    """What a process in the sandbox sends."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=work_inside, args=(theirs, place, hidden, pack(work, *arguments))
    )
    process.start()
    theirs.close()
    events = []
    try:
        while ours.poll(60):
            events.append(json.loads(ours.recv_bytes()))
    except EOFError:
        pass
    process.join(10)
    return events


def test_nothing_outside_is_changed_or_reached(has_sandbox, tmp_path):
    if not has_sandbox:
        pytest.skip("this system has no user namespaces")
    place, outside, hidden = (tmp_path / name for name in ("place", "outside", "hidden"))
    for folder in (place, outside, hidden):
        folder.mkdir()
    (hidden / "labels.tsv").write_text("0")
    (outside / "there").write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        sandboxed, tried, after, read, temporary = events_of(
            place, hidden, attempts, outside, port, hidden
        )
    assert sandboxed == ["sandbox", None]
    assert not any(tried.values()), tried
    assert after == {"after another": False}
    assert read == {"read": True}
    assert temporary == {"temporary": True}
    assert [path.name for path in outside.iterdir()] == ["there"]
    assert (outside / "there").read_text() == "as it was"
    assert {path.name for path in place.iterdir()} > {"empty"}


def test_a_system_without_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox.sys, "platform", "darwin")
    assert sandbox.enter(tmp_path) == "only Linux has it"
    sent = []
    pipe = type("Pipe", (), {"send_bytes": lambda _, event: sent.append(json.loads(event))})()
    work_inside(pipe, tmp_path, None, pack(reply, 3))
    assert sent == [["sandbox", "only Linux has it"], 3]


class Trap:
    """Makes a file where it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.parametrize(
    "sent", [b"[]", b'["not run"]', b'["moved", 1]', b'["other"]', b"[" * 100_000, b"1", None]
)
def test_what_is_no_event_is_a_reason_and_nothing_is_unpickled(sent, tmp_path):
    ours, theirs = Pipe()
    theirs.send_bytes(pickle.dumps(Trap(tmp_path / "touched")) if sent is None else sent)
    with pytest.raises(NotRun, match="its process sent something that is not an event"):
        Limit(1).receive(Child(None, ours), Reporter(), "result")
    assert not list(tmp_path.iterdir())
