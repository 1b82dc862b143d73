"""Scores of attacks on a transcript or a trained model, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.bench.contracts import Leak
from leakboard.bench.external import Audit
from leakboard.leaderboards.rendering import Cell, Table, columns
from leakboard.leaderboards.tables import GOAL_WORDS, count, format_goal
from leakboard.leaderboards.terminal.layout import FIRST, best_first

COLUMNS = columns("attack", "goal", ">success", ">chance", "?reads", "?metric", "?view")
EXPLANATION = (
    "Success is from 0 to 1 (exposure in bits), with its 95 % interval. An attack at chance level is no evidence of "
    "privacy by itself: attack the same training without protection, and check that it works there."
)


def attacked_parts(audit: Audit, everything: bool = True) -> Iterator[Table | str]:
    """The scores, the strongest attack of each goal first, and the reasons why other attacks have none.

    Args:
        everything: False for the first attacks only, and the number of the others.
    """
    if audit.cut_short:
        yield (
            f"The recording ended early ({audit.cut_short}): the transcript holds only the beginning of the training."
        )
    scored = [leak for leak in audit.leaks if leak.success is not None]
    scored.sort(key=lambda leak: -(leak.advantage or 0))
    scored = best_first(scored, lambda leak: (leak.goal, leak.attribute))
    shown = scored if everything else scored[:FIRST]
    if shown:
        yield Table("Attacks", COLUMNS, [_row(leak) for leak in shown])
        if everything:
            yield EXPLANATION
    yield from dict.fromkeys(
        f"{attack}: {GOAL_WORDS[guess.goal]} of {guess.split}: {len(guess.values)} guesses about {count(len(guess.rows), 'example')}"
        for attack, guess in audit.guesses
    )
    missing = [leak for leak in audit.leaks if leak.status != "ok"]
    shown_reasons = (
        missing if everything or not scored else [m for m in missing if m.status != "skipped"]
    )
    yield from dict.fromkeys(
        f"{leak.status}: {leak.attack.name}, {GOAL_WORDS[leak.goal]}: {leak.reason}"
        for leak in shown_reasons
    )
    more, unsaid = len(scored) - len(shown), len(missing) - len(shown_reasons)
    if more or unsaid:
        yield f"{count(more, 'more score')} and {count(unsaid, 'skipped attack')}; all with --all"


def _row(leak: Leak) -> list[Cell | str]:
    success = leak.success
    assert success is not None
    return [
        leak.attack.name,
        format_goal(leak.goal, leak.attribute),
        f"{success.value:.3f} [{success.low:.3f}, {success.high:.3f}]",
        f"{success.chance:.3f}",
        str(leak.channel or "nothing"),
        leak.metric,
        leak.view or "–",
    ]
