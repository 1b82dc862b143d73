"""Commands in processes that import nothing: they are forked from a server that has everything loaded."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import util
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess


def start_command(*words: object) -> BaseProcess:
    """`leakboard WORDS` without output, in a process group of its own; its workers come from a server of its own."""
    return _started(_command, *map(str, words))


class ForkedAttack:
    """Stands for the `subprocess.Popen` of an attack from outside: a fork of what has everything loaded."""

    def __init__(self, words: Sequence[str], pass_fds: Sequence[int], **_: object) -> None:
        with Connection(os.dup(pass_fds[0])) as pipe:
            self._process = _started(_serve, pipe)

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode


def _serve(pipe: Connection) -> None:
    from leakboard.bench.running.isolation import serve

    serve(os.dup(pipe.fileno()))


def _started(target: Callable[..., None], *given: object) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    # The modules that workers of a run need, since a process of the tests has one server for both.
    context.set_forkserver_preload(["leakboard.bench.running.workers", "transformers", "peft"])
    process = context.Process(target=target, args=given)
    process.start()
    return process


def _command(*words: str) -> None:
    from leakboard.bench.cli import main

    os.setsid()
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        # Another interpreter would import for seconds what is loaded here.
        util.spawnv_passfds = _forked
        sys.argv = ["leakboard", *words]
        main()


def _forked(path: bytes, args: Sequence[str], passed: Sequence[int]) -> int:
    """Id of a fork of this process that runs `python -c CODE`, the last of the arguments, and has the passed files only."""
    if child := os.fork():
        return child
    code = 1
    try:
        for file in map(int, os.listdir("/proc/self/fd")):
            if file > 2 and file not in passed:
                with suppress(OSError):  # the listing's own
                    os.close(file)
        exec(args[-1], {"__name__": "__main__"})
        code = 0
    finally:
        os._exit(code)
