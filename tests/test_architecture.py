"""The import rules, read off the syntax tree: reading order is the direction of the data."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import softmargin

ROOT = Path(softmargin.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# What each part may import of ours. An entry with a dot names one module of a part.
ALLOWED = {
    "core": set(),
    "tasks": {"core"},
    "linalg": {"core.jit"},
    "data": {"core", "linalg"},
    "kernels": {"core", "data", "linalg"},
    "io": {"core", "data", "tasks"},
    "problems": {"core", "data", "kernels", "linalg"},
    "solvers": {"core", "linalg", "problems.base", "problems.box_qp"},
    "metrics": {"core", "linalg"},
    "prediction": {"core", "io", "kernels.by_name", "kernels.functions", "linalg.thresholds", "tasks"},
    "estimators": {
        "core",
        "data",
        "kernels",
        "linalg",
        "problems",
        "solvers",
        "io",
        "metrics",
        "prediction",
        "report",
        "tasks",
    },
    "export": {"core", "estimators.stored.parts", "io", "kernels.functions", "prediction", "tasks"},
    "report": {"core", "io", "metrics", "tasks"},
    "cli": {"core", "estimators", "io", "metrics", "onnx", "prediction", "report", "tasks"},
}
# Foreign packages that live in some parts only.
HOME_OF = {
    "scipy.sparse": {"data", "io"},
    "sklearn": {"estimators"},
    "dask": {"data"},
    "distributed": {"data"},
    "matplotlib": {"report"},
    "onnx": {"export"},
    "skl2onnx": {"export"},
}


def imports(tree):
    """(module, line, at top level) of every import in a file; `from a import b` counts as a and as a.b."""
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module, node.lineno, id(node) in top
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno, id(node) in top


def part_of(path):
    return path.relative_to(ROOT).parts[0]


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def submodules():
    return [path for path in FILES if path.parent != ROOT]


@pytest.mark.parametrize("path", submodules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_parts_import_only_what_they_may(path):
    part = part_of(path)
    allowed = ALLOWED[part]
    for module, line, _ in imports(parsed(path)):
        if not module.startswith("softmargin."):
            continue
        inner = module.removeprefix("softmargin.")
        good = inner.split(".")[0] in {part, *allowed} or any(
            inner == entry or inner.startswith(entry + ".") or entry.startswith(inner + ".") for entry in allowed
        )
        assert good, f"{path.name}:{line} imports {module}, which {part} may not"


@pytest.mark.parametrize("path", submodules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_foreign_packages_stay_at_home(path):
    for module, line, _ in imports(parsed(path)):
        for package, homes in HOME_OF.items():
            if module == package or module.startswith(package + "."):
                assert part_of(path) in homes, f"{path.name}:{line} imports {package}"


def test_what_machines_need_does_not_import_scikit_learn():
    """Machines fit for the command line: whatever they import at their top, step by step, is free of scikit-learn."""
    found = {}
    todo = list((ROOT / "estimators" / "machines").glob("*.py"))
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found[path] = [(module, at_top) for module, _, at_top in imports(parsed(path))]
        for module, at_top in found[path]:
            assert not module.startswith("sklearn"), f"{path.name} imports {module}"
            inner = ROOT / Path(*module.split(".")[1:])
            if module.startswith("softmargin.") and at_top and inner.with_suffix(".py").is_file():
                todo.append(inner.with_suffix(".py"))
    assert ROOT / "estimators" / "linear_work.py" in found


def test_commands_use_no_private_names_of_other_files():
    """What two commands need has a home of its own, from which both take it."""
    for path in (ROOT / "cli").rglob("*.py"):
        tree = parsed(path)
        own = {module.split(".")[-1] for module, _, _ in imports(tree) if module.startswith("softmargin.cli.")}
        assert not [name for name in own if name.startswith("_")], path
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in own:
                assert not node.attr.startswith("_"), f"{path.name}:{node.lineno} uses {node.value.id}.{node.attr}"


def test_solver_families_do_not_import_each_other():
    solvers = ROOT / "solvers"
    families = {p.name for p in solvers.iterdir() if p.is_dir() and p.name != "__pycache__"}
    for path in solvers.rglob("*.py"):
        own = path.relative_to(solvers).parts[0]
        if own == "__init__.py":
            continue  # the list of public names
        for module, line, _ in imports(parsed(path)):
            for family in families - {own}:
                assert not module.startswith(f"softmargin.solvers.{family}"), f"{path.name}:{line} imports {module}"


def test_only_private_files_are_compiled():
    for path in FILES:
        uses_jit = any(module.startswith(("numba", "softmargin.core.jit")) for module, _, _ in imports(parsed(path)))
        if uses_jit:
            assert path.name.startswith("_") or path.parent == ROOT / "core", path


def test_compiled_files_are_imported_inside_functions():
    for path in FILES:
        if path.name.startswith("_") and path.name != "__init__.py":
            continue
        for module, line, at_top in imports(parsed(path)):
            last = module.split(".")[-1]
            compiles = last.startswith("_") or module == "softmargin.core.jit"
            if module.startswith("softmargin.") and compiles and at_top:
                pytest.fail(f"{path.name}:{line} imports {module} at its top: importing softmargin would load Numba")


@pytest.mark.parametrize("part", ["solvers", "problems", "linalg", "data"])
def test_no_printing_clock_or_warnings_in(part):
    for path in (ROOT / part).rglob("*.py"):
        for module, line, _ in imports(parsed(path)):
            assert module.split(".")[0] not in {"time", "warnings", "logging"}, f"{path.name}:{line}"
        for node in ast.walk(parsed(path)):
            is_print = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
            assert not is_print, f"{path.name}:{node.lineno} prints"


def test_only_convert_asks_what_X_is():
    for path in FILES:
        if path == ROOT / "data" / "convert.py":
            continue
        text = path.read_text(encoding="utf-8")
        assert "issparse" not in text, path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                first = node.args[0]
                assert getattr(first, "id", "") != "X", f"{path.name}:{node.lineno} asks for the type of X"


def test_numba_parallel_features_are_not_used():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for word in ("prange", "parallel=True", "jitclass"):
            assert word not in text, f"{path.name} uses {word}"


@pytest.mark.parametrize("statement", ["import softmargin", "from softmargin import LinearSVC, certify, OCAS"])
def test_importing_does_not_import_numba(statement):
    code = f"import sys; {statement}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_does_not_import_dask():
    code = "import sys; from softmargin import LinearSVC; sys.exit('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there_and_documented():
    for name in softmargin.__all__:
        assert getattr(softmargin, name).__doc__, name
