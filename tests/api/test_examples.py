"""Each public function and main class has an example in its docstring, and the examples run."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
import shutil
from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest
from paths import ROOT

import leakboard as lb

GIVEN = ("Canaries", "Engine", "Recorder", "Suite")
"""Classes of arguments and of loops; the other main classes are results of functions."""
TRAINED = {
    *("Attacked", "Canaries", "Engine", "Recorder", "Report", "Tuning"),
    *("attack", "audit", "check", "push", "run", "tune"),
}
"""Only these may skip lines: they train, attack, or need the network."""
OF_THE_READER = {"Trainer", "model", "tokenized", "trainer"}
"""Names that stand for a reader's own training."""
LONGEST = 4
"""Lines of code in an example, without the import."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
Names = dict[str, type | None]
"""Names of an example and their classes, if known."""


def returned(function: object) -> list[type]:
    """Public classes in the annotation of what a function returns."""
    words = re.findall(r"\w+", str(inspect.signature(function).return_annotation))
    classes = [getattr(lb, word) for word in words if word in lb.__all__]
    return [cls for cls in classes if inspect.isclass(cls)]


def subjects() -> dict[str, object]:
    public = {name: getattr(lb, name) for name in lb.__all__}
    found = {name: one for name, one in public.items() if inspect.isfunction(one)}
    methods = {
        f"Results.{name}": one
        for name, one in vars(lb.Results).items()
        if inspect.isfunction(one) and not name.startswith("_")
    }
    results = {
        cls.__name__: cls for one in [*found.values(), *methods.values()] for cls in returned(one)
    }
    return found | methods | results | {name: public[name] for name in GIVEN}


SUBJECTS = subjects()


def example(name: str) -> doctest.DocTest:
    text = inspect.getdoc(SUBJECTS[name]) or ""
    _, _, section = text.partition("\nExamples:\n")
    return doctest.DocTestParser().get_doctest(section, {}, name, None, None)


def code(name: str) -> str:
    return "".join(one.source for one in example(name).examples)


def skips(one: doctest.Example) -> bool:
    return bool(one.options.get(doctest.SKIP))


def class_of(value: ast.expr, names: Names) -> type | None:
    """The class of a value of an example, if it follows from names and annotations."""
    match value:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="lb"), attr=name)):
            called = getattr(lb, name)
            return called if inspect.isclass(called) else next(iter(returned(called)), None)
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if cls := class_of(owner, names):
            return next(iter(returned(getattr(cls, name))), None)
    return None


def lacks(cls: type | None, name: str) -> bool:
    """Whether a class is known and has no such attribute."""
    if cls is None or hasattr(cls, name) or name in getattr(cls, "model_fields", ()):
        return False
    documented = rf"^ +(\w+, )*{name}(, \w+)*: "
    return name not in getattr(cls, "__dataclass_fields__", ()) and not re.search(
        documented, inspect.getdoc(cls) or "", re.MULTILINE
    )


def mistakes(source: str) -> Iterator[str]:
    """Names, attributes and arguments of an example that do not exist."""
    names: Names = {}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = class_of(node.value, names)
        elif isinstance(node, ast.Import):
            names |= dict.fromkeys(alias.asname or alias.name for alias in node.names)
    used = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    bound = {one.id for one in used if isinstance(one.ctx, ast.Store)}
    known = names.keys() | bound | OF_THE_READER | vars(builtins).keys()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name not in known:
                yield f"unknown name {name}"
            case ast.Attribute(value=ast.Name(id="lb"), attr=name) if name not in lb.__all__:
                yield f"no public name {name}"
            case ast.Attribute(value=owner, attr=name) if lacks(class_of(owner, names), name):
                yield f"{class_of(owner, names).__name__} has no {name}"
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                yield from wrong_arguments(node, owner, name, names)


def wrong_arguments(call: ast.Call, owner: ast.expr, name: str, names: Names) -> Iterator[str]:
    of_lb = isinstance(owner, ast.Name) and owner.id == "lb"
    place = lb if of_lb else class_of(owner, names)
    function = getattr(place, name, None)
    if place is None or not callable(function):
        return
    itself = [] if of_lb else [None]
    positional = [*itself, *(None for one in call.args if not isinstance(one, ast.Starred))]
    given = {one.arg: None for one in call.keywords if one.arg}
    partly = any(one.arg is None for one in call.keywords)
    signature = inspect.signature(function)
    try:
        (signature.bind_partial if partly else signature.bind)(*positional, **given)
    except TypeError as error:
        yield f"{name}: {error}"


@pytest.mark.parametrize("name", SUBJECTS)
def test_it_has_one_short_example_with_names_and_arguments_that_exist(name):
    lines = example(name).examples
    assert lines, f"{name} has no section `Examples:` with lines that begin with >>>"
    first, *others = (inspect.getdoc(SUBJECTS[name]) or "").split("\nExamples:\n")[1].splitlines()
    assert first.strip() == ">>> import leakboard as lb"
    assert sum(line.strip().startswith((">>>", "...")) for line in others) <= LONGEST
    compile(code(name), name, "exec")
    assert list(mistakes(code(name))) == []
    own = name.rpartition(".")[2]
    assert own[0].isupper() or f".{own}(" in code(name), f"no call of {own}"
    if any(map(skips, lines)):
        assert name in TRAINED


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('lb.run("smoke", wokers=2)', "run: got an unexpected keyword argument 'wokers'"),
        ("lb.tune()", "tune: missing a required argument: 'suite'"),
        ("lb.runn('smoke')", "no public name runn"),
        ("lb.run(suite)", "unknown name suite"),
        ("lb.run('smoke').bests()", "Results has no bests"),
        ("r = lb.load('x')\nr.plot(kinds=1)", "plot: got an unexpected keyword argument 'kinds'"),
    ],
)
def test_a_wrong_example_is_found(wrong, told):
    assert told in list(mistakes(f"import leakboard as lb\n{wrong}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a reader has run a suite: records lie in `runs/mine`."""
    place = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "results/published/sap-sst2", place / "runs/mine")
    return place


@pytest.mark.parametrize("name", SUBJECTS)
def test_its_example_runs_and_prints_what_it_says(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(example(name), out=report.append)
    plt.close("all")
    assert result.failed == 0, "".join(report)
