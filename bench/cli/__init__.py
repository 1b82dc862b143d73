"""The command `leakboard`."""

# In the order in which --help shows their commands.
from bench.cli import running, reading, methods, submissions  # noqa: F401, I001
from bench.cli.app import app, complaints, console, main

__all__ = ["app", "complaints", "console", "main"]
