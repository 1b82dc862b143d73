"""The command `leakboard`: list, plan and run suites; attack transcripts; read, share and verify records.

Each command parses its arguments and calls the public API or a package of `bench`.
It prints tables, progress bars, and errors of one sentence. The exit code is 0 on success, 1 where a cell or a
check failed, 2 for an error that the user can fix, 130 after Ctrl-C, and 143 after SIGTERM.
"""

# In the order in which --help shows their commands.
from leakboard.bench.cli import running, tuning, attacking, auditing, reading  # noqa: F401, I001
from leakboard.bench.cli import exporting, sharing  # noqa: F401
from leakboard.bench.cli import methods, models, submissions, doctor  # noqa: F401
from leakboard.bench.cli.app import app, complaints, console, main

__all__ = ["app", "complaints", "console", "main"]
