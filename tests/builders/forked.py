"""Commands in processes that import nothing: they are forked from a server that has everything loaded."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess


def start_command(*words: object) -> BaseProcess:
    """`leakboard WORDS` without output, in a process group of its own; its workers come from a server of its own."""
    context = multiprocessing.get_context("forkserver")
    # The modules that workers of a run need, since a process of the tests has one server for both.
    context.set_forkserver_preload(["leakboard.bench.running.workers", "transformers", "peft"])
    process = context.Process(target=_command, args=tuple(map(str, words)))
    process.start()
    return process


def _command(*words: str) -> None:
    from leakboard.bench.cli import main

    os.setsid()
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        sys.argv = ["leakboard", *words]
        main()
