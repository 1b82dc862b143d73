"""The secret from which a customer's secrets are drawn: coins, digits of canaries, noise, mixing weights.

A cell and its seed are public, and so is this code: an attack could draw again whatever comes from these
alone. Whoever runs cells holds a secret beside them, and repeats a run exactly with the same one.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, fingerprint
from leakboard.bench.records import Store
from leakboard.bench.running.reporting import Reporter

VARIABLE = "LEAKBOARD_SECRET"
SHORTEST = 8
"""Characters; what is shorter could be guessed."""


def own_secret() -> str:
    """That of the environment, or of the user; the first call draws one and keeps it.

    Raises:
        LeakboardError: it is too short, or cannot be kept.
    """
    given = os.environ.get(VARIABLE)
    where, secret = (VARIABLE, given) if given is not None else _kept()
    if len(secret) < SHORTEST:
        raise LeakboardError(f"{where}: a secret has at least {SHORTEST} characters")
    return secret


def secret_of(store: Store, reporter: Reporter) -> str:
    """That of who runs cells into a store, or what the records were drawn from that stand there.

    Raises:
        LeakboardError: they were drawn from one that is not here, or from several.
    """
    found = {record.provenance.secret for record in store.read_all() if record.status == "ok"}
    if found == {None}:
        reporter.warned(
            f"{store.folder}: secrets of its records were drawn from the public seeds, as in earlier "
            "versions, and those that come are, too; for secrets that no attack can derive, choose "
            "another --out"
        )
        return ""
    secret = own_secret()
    if found - {fingerprint(secret)}:
        raise LeakboardError(
            f"{store.folder}: its records were drawn from the secret with the fingerprint "
            f"{' and '.join(sorted(map(str, found)))}, and the one here has {fingerprint(secret)}. "
            f"Set {VARIABLE} to that one, or choose another --out"
        )
    return secret


def _kept() -> tuple[str, str]:
    """Where the user's secret is kept, and the secret."""
    import typer

    file = Path(typer.get_app_dir("leakboard")) / "secret"
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=file.parent) as drawn:
                drawn.write(secrets.token_hex(16))
                drawn.flush()
                with suppress(FileExistsError):  # another process was first
                    os.link(drawn.name, file)
        return str(file), file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LeakboardError(
            f"{file}: the secret of your runs cannot be kept there ({error}). Set {VARIABLE} to "
            f"{SHORTEST} characters or more of your own"
        ) from error
