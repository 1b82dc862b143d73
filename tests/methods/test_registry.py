"""The registry: what it finds, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from paths import ROOT

import leakboard
import leakboard.bench.methods.registry as registry
from leakboard.bench.contracts.errors import LeakboardError

DEFENSE = """
from __future__ import annotations
from leakboard.bench.methods import Defense, Source

class {cls}(Defense):
    name = "{name}"
    source = Source("a test")
    emits = frozenset()
    strength: float | None = None

    def fine_tune(self, session):
        raise NotImplementedError
"""
ATTACK = """
from leakboard.bench.contracts import ThreatModel
from leakboard.bench.methods import Attack, Source

class Guesser(Attack):
    name = "guesser"
    source = Source("a test")
    threat = ThreatModel(frozenset(), frozenset())

    def guess(self, seen, knowledge, rng):
        return []
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package `defenses` in place of the project's, and no plug-ins."""
    package = tmp_path / "leakboard" / "defenses"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in [n for n in sys.modules if n.startswith("leakboard.defenses")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(leakboard, "defenses", raising=False)
    monkeypatch.setattr(leakboard, "__path__", [str(package.parent), *leakboard.__path__])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    registry.defenses.cache_clear()
    yield package
    registry.defenses.cache_clear()
    for name in [n for n in sys.modules if n.startswith("leakboard.defenses")]:
        del sys.modules[name]


def plug_in(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("mine", value, "leakboard.defenses")
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))


def test_a_file_in_the_folder_is_found_without_any_other_edit(folder: Path) -> None:
    (folder / "zebra.py").write_text(DEFENSE.format(cls="Zebra", name="zebra"))
    (folder / "ant.py").write_text(DEFENSE.format(cls="Ant", name="ant"))
    assert list(registry.defenses()) == ["ant", "zebra"]
    assert registry.defense("ant").__module__ == "leakboard.defenses.ant"


def test_imported_abstract_and_nameless_classes_are_not_listed(folder: Path) -> None:
    (folder / "ant.py").write_text(DEFENSE.format(cls="Ant", name="ant"))
    (folder / "parts.py").write_text(
        "from leakboard.bench.methods import Defense\n"
        "from leakboard.defenses.ant import Ant\n"
        "class Halfway(Defense):\n"
        "    name = 'halfway'\n"
        "class Nameless(Defense):\n"
        "    def fine_tune(self, session): ...\n"
    )
    (folder / "numbers.py").write_text("PI = 3\n")
    assert list(registry.defenses()) == ["ant"]


def test_a_duplicate_name_names_both_classes_and_files(folder: Path) -> None:
    (folder / "a.py").write_text(DEFENSE.format(cls="First", name="same"))
    (folder / "b.py").write_text(DEFENSE.format(cls="Second", name="same"))
    with pytest.raises(LeakboardError) as e:
        registry.defenses()
    for part in ("'same'", "First", str(folder / "a.py"), "Second", str(folder / "b.py")):
        assert part in str(e.value)


def test_a_broken_module_is_named_with_its_line_and_cause(folder: Path) -> None:
    file = folder / "broken.py"
    file.write_text("X = 1\nimport no_such_module\n")
    with pytest.raises(LeakboardError) as e:
        registry.defenses()
    assert str(e.value).startswith(f"{file}:2: cannot be imported: ModuleNotFoundError")
    assert "no_such_module" in str(e.value)


def test_a_syntax_error_is_named_with_its_file(folder: Path) -> None:
    file = folder / "broken.py"
    file.write_text("def (:\n")
    with pytest.raises(LeakboardError) as e:
        registry.defenses()
    assert str(e.value).startswith(f"{file}: cannot be imported: SyntaxError")
    assert "line 1" in str(e.value)


def test_an_unknown_name_gets_the_nearest_one(folder: Path) -> None:
    (folder / "ant.py").write_text(DEFENSE.format(cls="Ant", name="ant"))
    with pytest.raises(LeakboardError, match=r"unknown defense 'amt'. Did you mean 'ant'\?"):
        registry.defense("amt")


def test_a_name_from_before_leads_to_the_method_as_it_is_called_now(folder: Path) -> None:
    named = DEFENSE.format(cls="Bee", name="bee").replace("strength", "formerly = ('wasp',)\n    s")
    (folder / "bee.py").write_text(named)
    with pytest.raises(LeakboardError, match=r"unknown defense 'wasp'\. It is called 'bee' now"):
        registry.defense("wasp")


def test_an_entry_point_adds_a_method(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside_plugin.py").write_text(DEFENSE.format(cls="Far", name="far"))
    plug_in(monkeypatch, "outside_plugin:Far")
    assert list(registry.defenses()) == ["far"]


def test_a_class_of_the_folder_that_is_also_an_entry_point_is_no_duplicate(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ant.py").write_text(DEFENSE.format(cls="Ant", name="ant"))
    plug_in(monkeypatch, "leakboard.defenses.ant:Ant")
    assert list(registry.defenses()) == ["ant"]


def test_an_entry_point_that_fails_is_named_with_its_cause(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_in(monkeypatch, "no_such_module:Far")
    with pytest.raises(LeakboardError) as e:
        registry.defenses()
    assert "entry point 'mine = no_such_module:Far'" in str(e.value)
    assert "leakboard.defenses" in str(e.value)
    assert "No module named 'no_such_module'" in str(e.value)


@pytest.mark.parametrize(
    "value", ["leakboard.bench.methods:Attack", "leakboard.bench.methods:Defense", "math:pi"]
)
def test_an_entry_point_that_is_no_usable_defense_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    plug_in(monkeypatch, value)
    with pytest.raises(LeakboardError, match=r"must name a subclass of leakboard\.Defense"):
        registry.defenses()


def test_a_method_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ATTACK)
    assert registry.load_method(str(file)).name == "guesser"
    assert registry.load_method(f"{file}:Guesser").name == "guesser"


def test_a_file_with_two_methods_asks_which(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ATTACK + DEFENSE.format(cls="Ant", name="ant").replace("from __future__", "#"))
    with pytest.raises(LeakboardError) as e:
        registry.load_method(str(file))
    assert "Ant, Guesser" in str(e.value)
    assert f"{file}:Ant" in str(e.value)
    assert registry.load_method(f"{file}:Guesser").name == "guesser"
    with pytest.raises(LeakboardError, match=r"no method class 'Gesser'. Did you mean 'Guesser'\?"):
        registry.load_method(f"{file}:Gesser")


def test_a_file_without_a_method_says_what_a_method_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ATTACK.replace("def guess(", "def gess("))
    with pytest.raises(LeakboardError, match=r"no method.*`fine_tune` or `guess`"):
        registry.load_method(str(file))


def test_a_file_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("\n1 / 0\n")
    with pytest.raises(LeakboardError) as e:
        registry.load_method(str(file))
    assert str(e.value).startswith(f"{file}:2: cannot be imported: ZeroDivisionError")


@pytest.mark.parametrize("where", ["nowhere.py", "nowhere.py:X", "nowhere.txt", "."])
def test_a_file_that_is_not_there_is_named(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LeakboardError, match="no such Python file"):
        registry.load_method(where)


def test_the_registry_itself_imports_nothing_heavy() -> None:
    code = "import sys, leakboard.bench.methods.registry; sys.exit(any(m in sys.modules for m in ('torch', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_every_method_of_the_project_is_found_under_its_own_name() -> None:
    for found in (registry.defenses(), registry.attacks()):
        assert found
        assert list(found) == sorted(found)
        assert all(cls.name == name for name, cls in found.items())


@pytest.mark.parametrize("former", ["refuses", "unfit", "unmarked"])
@pytest.mark.parametrize("base", [leakboard.Defense, leakboard.Attack])
def test_a_class_with_a_method_that_skip_replaced_is_rejected_by_the_new_name(base, former):
    with pytest.raises(
        LeakboardError, match=rf"Old\.{former}\(\) .* Define skip\(self, conditions\)"
    ):
        type("Old", (base,), {former: lambda self, given: None})


def test_a_file_with_a_method_that_skip_replaced_is_rejected_by_its_place_and_the_new_name(
    tmp_path,
):
    path = tmp_path / "old.py"
    text = DEFENSE.format(cls="Old", name="old")
    path.write_text(f"{text}\n    def refuses(self, cut):\n        return None\n")
    with pytest.raises(LeakboardError, match=rf"{path}:\d+: .*Define skip\(self, conditions\)"):
        registry.load_method(str(path))
