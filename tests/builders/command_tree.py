"""All commands of the application, by introspection."""

from __future__ import annotations

import typer

from leakboard.bench import cli


def commands(group=None, before=()):
    """Each command with its words."""
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        words = (*before, name)
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield " ".join(words), command
