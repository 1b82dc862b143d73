"""Records in a repository of the hub: what is put there comes out again, and mistakes are told."""

from __future__ import annotations

import os
import re
import socket
import sys
from functools import partial
from threading import Thread

import pandas as pd
import pytest
from boards import seeds
from hub_server import Hub, server

import leakboard as lb
from leakboard.bench.records.store import Store

pytest.importorskip("huggingface_hub", reason="needs the extra 'hub'")

RECORDS = [*seeds("none", [0.9, 0.91], [0.9, 0.9]), *seeds("sap", [0.8], [0.5])]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    import huggingface_hub

    held = Hub()
    serving = server(held)
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    here = f"http://127.0.0.1:{serving.server_address[1]}"
    there = partial(
        huggingface_hub.HfApi, endpoint=here
    )  # HF_ENDPOINT counts at the first import alone
    monkeypatch.setattr(huggingface_hub, "HfApi", there)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_a_token_of_a_test")
    yield held
    serving.shutdown()
    serving.server_close()
    thread.join()


@pytest.fixture
def ours(tmp_path):
    for record in RECORDS:
        Store(tmp_path / "ours").write(record)
    return tmp_path / "ours"


def test_what_is_pushed_comes_out_again_record_by_record(hub, ours):
    place = lb.push("hf://me/records", ours)
    assert re.search(r"/datasets/me/records/commit/[0-9a-f]{40}$", place)
    found = lb.load("hf://me/records")
    assert found.records == lb.load(ours).records
    assert found.name == "hf://me/records"
    assert found.problems == ()


def test_a_repository_has_a_table_and_a_card_that_says_how_to_load_it(hub, ours, tmp_path):
    lb.push("hf://me/records", ours)
    files = hub.files("me/records")
    assert set(files) == {"records.parquet", "table.parquet", "README.md"}
    (tmp_path / "table.parquet").write_bytes(files["table.parquet"])
    assert len(pd.read_parquet(tmp_path / "table.parquet")) == len(lb.load(ours).frame())
    card = files["README.md"].decode()
    assert 'lb.load("hf://me/records")' in card
    assert "3 records of [Leakboard]" in card
    assert hub.cards == [card]


def test_pushing_again_adds_a_revision_and_the_former_one_can_still_be_loaded(hub, ours):
    first = lb.push("hf://me/records", ours).rpartition("/")[2]
    Store(ours).path(RECORDS[0].key).unlink()
    lb.push("hf://me/records", ours)
    assert len(lb.load("hf://me/records")) == 2
    assert len(lb.load(f"hf://me/records@{first}")) == 3
    assert len(lb.diff(f"hf://me/records@{first}", "hf://datasets/me/records")) == 1


def test_a_loaded_snapshot_is_taken_from_the_cache_the_next_time(hub, ours):
    lb.push("hf://me/records", ours)
    lb.load("hf://me/records")
    hub.asked.clear()
    lb.load("hf://me/records")
    assert [asked.split()[0] for asked in hub.asked] == ["HEAD"]


MISTAKES = {
    "no owner": ("hf://records", "expected hf://OWNER/NAME"),
    "a path in it": ("hf://me/records/matrix", "expected hf://OWNER/NAME"),
    "no such repository": ("hf://me/nothing", "no such dataset repository"),
    "no such revision": ("hf://me/empty@v9", "no such revision"),
    "no records": ("hf://me/empty", "it holds no records.parquet"),
    "something else": ("hf://me/other", "not a Parquet file"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_be_loaded_is_told(hub, name):
    address, told = MISTAKES[name]
    hub.repos["me/empty"] = {"1" * 40: {"README.md": b"# nothing"}}
    hub.repos["me/other"] = {"2" * 40: {"records.parquet": b"no table"}}
    with pytest.raises(lb.LeakboardError, match=re.escape(told)):
        lb.load(address)


def test_a_hub_that_refuses_says_so_and_why(hub, ours):
    hub.refuses = 403
    with pytest.raises(lb.LeakboardError, match=r"hf://me/records: HfHubHTTPError: .*403"):
        lb.push("hf://me/records", ours)


def test_a_revision_is_not_pushed_to(hub, ours):
    with pytest.raises(lb.LeakboardError, match="leave out @v1"):
        lb.push("hf://me/records@v1", ours)
    assert hub.repos == {}


def test_damaged_records_are_not_pushed(hub, ours):
    path = Store(ours).path(RECORDS[0].key)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(lb.LeakboardError, match="not valid JSON"):
        lb.push("hf://me/records", ours)
    assert hub.repos == {}


def test_without_the_extra_its_name_is_told(ours, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for act in (lambda: lb.load("hf://me/records"), lambda: lb.push("hf://me/records", ours)):
        with pytest.raises(lb.MissingExtra, match=re.escape("leakboard[hub]")):
            act()


def test_the_commands_push_and_read_by_the_same_address(hub, ours, leakboard):
    code, out, _ = leakboard("push", "hf://me/records", ours)
    assert (code, "pushed to http://" in out) == (0, True)
    code, out, _ = leakboard("diff", "hf://me/records", ours)
    assert code == 0
    assert "0 settings are new and 0 gone; 0 numbers changed" in out


def test_without_network_it_is_said_at_once(monkeypatch, tmp_path):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    asked = []

    def lookup(*args, **kwargs):
        asked.append(args[0])
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(lb.LeakboardError, match="nobody/nothing: the hub cannot be reached"):
        lb.load("hf://nobody/nothing")
    assert len(asked) == 1
    assert not huggingface_hub.constants.HF_HUB_OFFLINE
