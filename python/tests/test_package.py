"""The package itself: its names, documentation, stubs, and that importing it is cheap and silent."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.resources
import inspect
import pkgutil
import subprocess
import sys

import pytest

import conformax
from conformax import _conformax

OPTIONAL = {"torch": "torch", "sklearn": "sklearn", "spark": "pyspark", "polars": "polars", "_arrow": "pyarrow"}


def modules() -> list[str]:
    names = ["conformax"]
    for found in pkgutil.walk_packages(conformax.__path__, "conformax.", onerror=lambda name: None):
        names.append(found.name)
    return names


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name):
    for part, needed in OPTIONAL.items():
        if part in name.split("."):
            pytest.importorskip(needed)
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_every_public_name_is_there_and_documented():
    for name in conformax.__all__:
        if name == "WrapClassifier":
            pytest.importorskip("sklearn")
        value = getattr(conformax, name)
        assert name == "__version__" or inspect.getdoc(value), name


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert conformax.__version__ == version("conformax")


def test_types_are_marked():
    assert (importlib.resources.files("conformax") / "py.typed").is_file()


def stub() -> ast.Module:
    return ast.parse((importlib.resources.files("conformax") / "_conformax.pyi").read_text())


def arguments(function: ast.FunctionDef) -> list[str]:
    wanted = function.args
    return [it.arg for it in [*wanted.posonlyargs, *wanted.args, *wanted.kwonlyargs] if it.arg != "self"]


def test_stubs_name_what_the_module_has():
    declared = {
        node.name if not isinstance(node, ast.AnnAssign) else node.target.id
        for node in stub().body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))
    }
    assert declared == {name for name in dir(_conformax) if not name.startswith("__")}


def test_stubs_have_the_modules_signatures():
    compared = 0
    for node in stub().body:
        if isinstance(node, ast.FunctionDef):
            signature = inspect.signature(getattr(_conformax, node.name))
            assert arguments(node) == list(signature.parameters), node.name
            compared += 1
        if isinstance(node, ast.ClassDef):
            compared += compare_class(node, getattr(_conformax, node.name))
    assert compared > 15


def compare_class(node: ast.ClassDef, kind: type) -> int:
    methods = [it for it in node.body if isinstance(it, ast.FunctionDef)]
    public = {name for name in vars(kind) if not name.startswith("__")}
    assert {it.name for it in methods if not it.name.startswith("__")} == public, node.name
    plain = [it for it in methods if not it.decorator_list and not it.name.startswith("__")]
    for method in plain:
        found = [name for name in inspect.signature(getattr(kind, method.name)).parameters if name != "self"]
        assert arguments(method) == found, (node.name, method.name)
    new = [it for it in methods if it.name == "__new__"]
    if not new:
        with pytest.raises(TypeError, match="cannot create"):
            kind()
    for it in new:
        assert [name for name in arguments(it) if name != "cls"] == list(inspect.signature(kind).parameters)
    return len(plain) + len(new)


def test_compiled_objects_are_frozen():
    score = _conformax.Score("entmax")
    with pytest.raises(AttributeError):
        score.gamma = 2.0
    assert score == _conformax.Score("entmax", gamma=1.5) != _conformax.Score("sparsemax")


def test_import_is_silent_and_pulls_in_nothing_optional():
    optional = {"torch", "sklearn", "pandas", "pyarrow", "scipy", "polars", "pyspark"}
    script = f"import sys, conformax; print(sorted({optional} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_help_reads_well():
    text = inspect.getdoc(conformax.SplitConformalClassifier)
    assert "Parameters" in text and "Examples" in text
    assert str(inspect.signature(conformax.SplitConformalClassifier)).startswith(
        "(score: 'Any' = 'entmax', *, gamma: 'float | None' = None, alpha: 'Any' = None, confidence_level: 'Any' = None"
    )
