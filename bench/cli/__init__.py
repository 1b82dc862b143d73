"""The command `leakboard`: what there is, running, attacking, reading, checking, submitting.

Words come in, and each command hands them to the public API or to a room.
Out go tables, bars and errors in a sentence; the exit code is 0, 1 where something failed, 2 for an error.
"""

# In the order in which --help shows their commands.
from leakboard.bench.cli import running, tuning, attacking, reading, sharing, methods, submissions  # noqa: F401, I001
from leakboard.bench.cli.app import app, complaints, console, main

__all__ = ["app", "complaints", "console", "main"]
