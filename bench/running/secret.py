"""The secret seed of the customer's secrets: coins, digits of canaries, noise, mixing weights.

A cell, its seed and this code are public, so an attack could repeat every draw that depends on these alone. The
user who runs cells therefore has a secret, and can repeat a run exactly with the same secret.
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
MIN_LENGTH, MIN_DIFFERENT = 16, 8
"""Characters of a secret, and different ones among them; a weaker one could be guessed."""


def user_secret() -> str:
    """The secret of the environment, or else of the user; the first call draws and stores one.

    Raises:
        LeakboardError: it is too short, or cannot be stored.
    """
    given = os.environ.get(VARIABLE)
    where, secret = (VARIABLE, given) if given is not None else _stored_secret()
    if len(secret) < MIN_LENGTH or len(set(secret)) < MIN_DIFFERENT:
        raise LeakboardError(
            f"{where}: a secret needs at least {MIN_LENGTH} characters, {MIN_DIFFERENT} of them different: records "
            "hold its fingerprint, by which others could guess a weak one. Draw it, for example by "
            "`python -c 'import secrets; print(secrets.token_hex(16))'`"
        )
    return secret


def run_secret(store: Store, reporter: Reporter) -> str:
    """The secret for cells whose records go into a store; "" if its records were made without one.

    Raises:
        LeakboardError: its records were made with another secret, or with several.
    """
    fingerprints = {
        record.provenance.secret for record in store.read_all() if record.status == "ok"
    }
    if fingerprints == {None}:
        reporter.warned(
            f"{store.folder}: its records come from an earlier version, which drew secrets from the public "
            "seeds; new records there do the same. For secrets that no attack can derive, choose another --out"
        )
        return ""
    secret = user_secret()
    if fingerprints - {fingerprint(secret)}:
        raise LeakboardError(
            f"{store.folder}: its records were made with the secret of fingerprint "
            f"{' and '.join(sorted(map(str, fingerprints)))}, and yours has the fingerprint {fingerprint(secret)}. "
            f"Set {VARIABLE} to the secret of these records, or choose another --out"
        )
    return secret


def _stored_secret() -> tuple[str, str]:
    """Path of the user's stored secret, and the secret."""
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
            f"{file}: the secret of your runs cannot be stored there ({error}). Set {VARIABLE} to "
            f"a secret of your own, of {MIN_LENGTH} random characters or more"
        ) from error
