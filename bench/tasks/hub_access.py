"""Access to the Hugging Face hub: its cache alone while the server cannot be reached."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from leakboard.bench.contracts import LeakboardError

WAIT = 5.0
"""Longest time in seconds that is spent on finding out whether a server can be reached."""


@contextmanager
def hub_access(endpoint: str | None = None) -> Iterator[None]:
    """While the hub cannot be reached, its clients use their cache only; otherwise they would try for half a minute.

    Args:
        endpoint: address of the server, if it is not the client's own.

    Raises:
        ConnectionError: the hub cannot be reached, and the block needs more than the cache.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or can_connect(endpoint or constants.ENDPOINT):
        yield
        return
    clients: list[Any] = [constants]
    if "datasets.config" in sys.modules:
        clients.append(sys.modules["datasets.config"])
    before = [client.HF_HUB_OFFLINE for client in clients]
    for client in clients:
        client.HF_HUB_OFFLINE = True
    try:
        yield
    except LeakboardError:  # of what was in the cache
        raise
    except Exception as error:
        raise ConnectionError(
            "the hub cannot be reached, and the file is not in its cache"
        ) from error
    finally:
        for client, value in zip(clients, before, strict=True):
            client.HF_HUB_OFFLINE = value


def can_connect(address: str) -> bool:
    """Whether the server of an address accepts connections; True behind a proxy, which is not asked."""
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
        return True
    parts = urlsplit(address)
    reached: list[bool] = []

    def connect() -> None:
        with suppress(OSError):
            port = parts.port or (80 if parts.scheme == "http" else 443)
            socket.create_connection((parts.hostname, port), WAIT).close()
            reached.append(True)

    thread = Thread(target=connect, daemon=True)  # names may be looked up without a time limit
    thread.start()
    thread.join(WAIT)
    return bool(reached)
