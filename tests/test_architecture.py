"""The shape of the code: imports point down, functions and modules stay short, exceptions are named here.

An exception that is no longer needed fails too, so that the lists below only ever tell what is true.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "recollect"

LAYERS = (
    # from the top; a module may import from its own layer and from those below it
    ("surfaces",),
    ("app", "browse", "records", "asking", "parts"),
    ("overview", "doctor"),
    ("ingest", "extract", "artifacts", "consolidate", "search", "inject", "turns"),
    (
        *("config", "redact", "blocks", "note", "occasions", "text", "near", "store", "models", "workspace"),
        *("authors", "everywhere", "hand", "home", "markdown", "processes", "projects", "standing"),
    ),
    ("types", "errors"),
)
FIRST_STAGE = "ingest"  # of the path; it knows nothing of what comes after it
TYPES_ONLY = {("overview.py", "app")}  # what may be imported from above for its type alone

LONGEST_FUNCTION = 60
LONGEST_MODULE = 600
LONG_FUNCTIONS: set[str] = set()  # file:function
LONG_MODULES: set[str] = set()

BROAD_EXCEPTS = {
    "ingest/recovery.py": 1,
    "ingest/watch.py": 1,
    "extract/threads.py": 1,
    "models/embed/transformer.py": 1,
    "surfaces/mcp/server.py": 1,
    "surfaces/daemon/daemon.py": 1,
    "surfaces/daemon/lanes.py": 1,
    "surfaces/daemon/server.py": 1,
    "surfaces/daemon/worker.py": 1,
    "surfaces/hooks/client.py": 2,
    "surfaces/hooks/keeper.py": 1,
}  # each carries its reason on its line


STARTERS = {
    "processes.py": {"sys.executable", "shutil.which", "subprocess.Popen", "subprocess.run", "os.execve"},
    "surfaces/hooks/client.py": {"sys.executable", "os.execve"},  # it imports nothing of ours
    "surfaces/hooks/launcher.py": {"sys.executable"},  # the command of that client
}  # the ways to another process that a module takes itself


@cache
def modules() -> dict[str, ast.Module]:
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def layer(name: str) -> int:
    """0 is the top. The package itself stands above everything: it hands out what the application offers."""
    for number, members in enumerate(LAYERS):
        if name in members:
            return number
    if name in ("__init__", "__main__"):
        return -1
    raise AssertionError(f"`{name}` belongs to no layer: name it in LAYERS")


def member(file: str) -> str:
    """The name in LAYERS that a file belongs to."""
    return file.split("/")[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Members of this package that a tree imports."""
    known = {name for members in LAYERS for name in members} | {member(file) for file in modules()}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            top, _, rest = name.partition(".")
            if top == "recollect":
                first = rest.split(".")[0]
                assert isinstance(node, ast.stmt)
                yield first if first in known else "__init__", node


def type_checking(tree: ast.AST) -> set[ast.stmt]:
    return {
        statement
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
    }


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("file", sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")))
def test_imports_point_down(file: str) -> None:
    tree = modules()[file]
    own, for_types = member(file), type_checking(tree)
    inside = {node for function in functions(tree) for node in ast.walk(function)}
    for name, node in imported(tree):
        where = f"{file}:{node.lineno} imports {name}"
        if own in ("__init__", "__main__"):
            assert node in inside or node in for_types, f"{where} before it is needed"
            continue
        if (file, name) in TYPES_ONLY:
            assert node in for_types, f"{where} for more than its type"
            continue
        assert layer(own) <= layer(name), f"{where}, which lies above it"
        if own == FIRST_STAGE:
            assert layer(name) != layer(own) or name == own, f"{where}, a later stage"


def test_every_module_belongs_to_a_layer() -> None:
    for file in modules():
        assert layer(member(file)) >= -1


def test_types_and_errors_import_nothing_of_ours() -> None:
    assert [name for file in ("types.py", "errors.py") for name, _ in imported(modules()[file])] == []


def test_functions_are_short() -> None:
    long = {
        f"{file}:{function.name}"
        for file, tree in modules().items()
        for function in functions(tree)
        if function.end_lineno is not None and function.end_lineno - function.lineno + 1 > LONGEST_FUNCTION
    }
    assert long == LONG_FUNCTIONS


def test_modules_are_short() -> None:
    lengths = {file: len((SOURCE / file).read_text().splitlines()) for file in modules()}
    assert {file for file, length in lengths.items() if length > LONGEST_MODULE} == LONG_MODULES


def test_every_module_says_what_it_is() -> None:
    assert [file for file, tree in modules().items() if not ast.get_docstring(tree)] == []


def test_every_broad_except_is_counted_and_carries_its_reason() -> None:
    found: dict[str, int] = {}
    for file, tree in modules().items():
        lines = (SOURCE / file).read_text().splitlines()
        for handler in ast.walk(tree):
            if isinstance(handler, ast.ExceptHandler) and is_broad(handler):
                found[file] = found.get(file, 0) + 1
                assert "# reason: " in lines[handler.lineno - 1], f"{file}:{handler.lineno} without a reason"
    assert found == BROAD_EXCEPTS


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Catches everything and keeps it. To clean up and raise it again is not broad."""
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else {""}
    last = handler.body[-1]
    raises_again = isinstance(last, ast.Raise) and last.exc is None
    return bool(caught & {"", "Exception", "BaseException"}) and not raises_again


def test_nothing_but_a_surface_prints() -> None:
    printing = [
        f"{file}:{node.lineno}"
        for file, tree in modules().items()
        if member(file) != "surfaces"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_processes_start_in_one_place() -> None:
    """Anything else that names an interpreter or looks for a program could take it from the current folder."""
    ways = re.compile(
        r"sys\.executable|shutil\.which|subprocess\.\w+|os\.(system|popen|exec\w+|posix_spawn\w*|spawn\w+)"
        r"|multiprocessing(\.\w+)*|runpy(\.\w+)?|concurrent\.futures\.ProcessPoolExecutor"
    )
    found: dict[str, set[str]] = {}
    for file, tree in modules().items():
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Call):
                names = [ast.unparse(node.func)]
            elif isinstance(node, ast.Attribute):
                names = [name for name in [ast.unparse(node)] if name == "sys.executable"]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.setdefault(file, set()).update(name for name in names if ways.fullmatch(name))
    assert {file: taken for file, taken in found.items() if taken} == STARTERS
