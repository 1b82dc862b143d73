"""The undefended twin of a setting: its defense with protection off, on the same data, model and cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakboard.bench.contracts import grouped
from leakboard.bench.scoring import twin_settings
from leakboard.leaderboards.tables.leakage import Aim, Strongest
from leakboard.leaderboards.tables.settings import Group, Setting


class Twins:
    """Undefended twins of settings: the defenses with protection off that the classes name."""

    def __init__(
        self, groups: Sequence[Group], attacked: Mapping[int, Mapping[Aim, Strongest]]
    ) -> None:
        self._attacked = attacked
        every = (setting for group in groups for setting in group.settings)
        self._settings = grouped((one for one in every if one.undefended), _place)

    def of(
        self, setting: Setting, aim: Aim, mine: Strongest
    ) -> tuple[Strongest | None, tuple[str, ...]]:
        """The strongest attack on the twin, and the keys of its records; an undefended setting is its own twin.

        Twins with equal training are preferred, then those of the same group, then the one with most common seeds, and
        then the one that leaks most.
        """
        if setting.undefended:
            return mine, setting.keys
        names = twin_settings((setting.defense, setting.params))

        def preference(one: Setting) -> tuple[bool, bool, int, float]:
            theirs = self._attacked[id(one)][aim]
            in_group = one.group == setting.group
            is_alike = one.first.cell.train == setting.first.cell.train
            common = theirs.candidates.keys() & mine.candidates.keys()
            return in_group and is_alike, in_group, len(common), theirs.advantage.value

        near = [
            one
            for one in self._settings.get(_place(setting), [])
            if aim in self._attacked[id(one)]
            and (one.is_reproduced or not setting.is_reproduced)
            and (one.defense == setting.defense if names is None else _full_name(one) in names)
        ]
        best = max(near, key=preference, default=None)
        return (self._attacked[id(best)][aim], best.keys) if best else (None, ())


def _place(setting: Setting) -> tuple[object, ...]:
    cell = setting.first.cell
    return cell.data_hash, cell.model_hash, cell.cut


def _full_name(setting: Setting) -> tuple[str, str]:
    """Defense and parameters, including those that the records lack."""
    known = twin_settings((setting.defense, setting.params))
    return next(iter(known)) if known else (setting.defense, setting.params)
