"""The rooms of docs/architecture.md, kept by reading syntax trees. Each offence is named `file:line: what`."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.model.driver import Driver
from tests.how_to_driver import added_drivers
from tests.how_to_pages import ADD_A_DRIVER, ADD_A_STUDY, files_of

ROOT = Path(__file__).parents[2]
LIBRARIES = "resources/libraries/python/"
MAX_LINES = 600

PURE = ("model", "planning", "search", "analysis", "declaration")
"""Rooms of the libraries that need no machine; folders and modules of these names in a study are in the same rooms."""
REGISTRY = "resources.libraries.python.driver_registry"
"""The room `registry`: the one module of `drivers` that models and planning may import. It and declarations import no
driver; the packages that it looks into are imported for their paths."""
MACHINE = {"robot", "subprocess", "socket", "os", "time"}
UPSTREAM = {
    "declaration": {"model", "planning", "declaration"},
    "model": {"model"},
    "planning": {"model", "planning"},
    "search": {"model", "search"},
    "analysis": {"model", "search", "analysis"},
    "roles": {"model", "roles"},
    "drivers": {"model", "planning", "roles", "drivers", "declaration"},
    "emulation": {"model", "drivers", "declaration", "testbed", "emulation"},
    "recording": {"model", "planning", "recording"},
    "testbed": {"model", "planning", "search", "roles", "drivers", "declaration", "recording", "testbed"},
}
"""What a room may import of the libraries. Data flows one way; `studies` sits on top and may import all of them."""
OFFLINE = {*PURE, "recording"}
"""What csit_utils may import of the libraries: nothing that touches a machine."""
COMMANDS = re.compile(r"csit_utils/(commands/|studies/\w+/\w+_command\.py$)")
COMPOSITION = (
    "csit_utils/commands/runs/robot",
    "csit_utils/commands/runs/local",
    "csit_utils/commands/testbeds/doctor",
    "csit_utils/commands/testbeds/qualify",
    "csit_utils/commands/runs/bisect",
    "csit_utils/commands/runs/night",
)
"""Where offline tools and the live system meet on purpose: these may import anything."""
ROBOT = re.compile(r"resources/libraries/python/studies/(shared/\w+|\w+/(\w+Library|suite_rows))\.py$")
"""Robot libraries, and modules that they alone use."""
STUDIES = "resources.libraries.python.studies"
DRIVERS = "resources.libraries.python.drivers"
ROLES = ("vswitches", "generators", "functions", "probes")


def every_driver() -> list[Driver]:
    roles = (driver_registry.vswitches(), driver_registry.generators(), driver_registry.functions())
    return [each for role in roles for each in role.values()]


EVERY_DRIVER = every_driver()
ENGINES = set(driver_registry.container_engines())
PRODUCT_WORDS = {word.lower() for each in EVERY_DRIVER for word in each.product_words} | ENGINES
NAMES = {each.name for each in EVERY_DRIVER} | ENGINES
"""Of drivers in topologies and test rows: suites choose by them, and name no programs."""


def any_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?i)\b({'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})\b")


PRODUCTS, PROGRAMS = any_of(PRODUCT_WORDS), any_of(PRODUCT_WORDS - NAMES)
MAY_NAME_PRODUCTS = {
    "emulation/": "nodes are machines of QEMU, with a disk that has the packages of drivers",
    "model/testbed/csit_topology.py": "defaults of FD.io CSIT's files, which mean certain products",
    "csit_utils/dataset/foreign/csit.py": "a tag of FD.io CSIT",
    "studies/density/planning/tags.py": "a tag of FD.io CSIT",
    "csit_utils/studies/density/analysis/other_goals.py": "definitions of NDR and PDR by other tools",
}
"""Paths below the libraries or of csit_utils, with the reason."""
MAY_NAME_OTHERS = {
    "drivers/services/orchestrator.py": "programs that the scripts of two services start",
    "drivers/vpp/cli.py": "the command that makes interfaces of tunnels, and its reply",
    "drivers/vswitches/ovs/__init__.py": "the kind of NF that it shares memory with",
}
"""Paths of drivers that name products of other packages, with the reason."""


@cache
def packages_of_products() -> dict[str, set[str]]:
    """Names of the packages that declare a product, by its words."""
    found: dict[str, set[str]] = {}
    for role in ROLES:
        for file in (ROOT / LIBRARIES / "drivers" / role).glob("*/*.py"):
            if room_of(str(file.relative_to(ROOT))) == "declaration":
                package = f"{DRIVERS}.{role}.{file.parent.name}"
                module = import_module(package if file.stem == "__init__" else f"{package}.{file.stem}")
                for word in {word.lower() for each in getattr(module, "DRIVERS", ()) for word in each.product_words}:
                    found.setdefault(word, set()).add(file.parent.name)
    return found | {engine: {"containers"} for engine in ENGINES}


BROAD = {"Exception", "BaseException"}
BOUNDARY = "boundary"
"""In a comment on the line of a broad `except`: a step or thread boundary, where any error is carried on as a value."""

Finding = tuple[int, str]


@cache
def sources(*suffixes: str) -> tuple[Path, ...]:
    """Files of the project itself, without what tools put there."""
    tops = [ROOT / top for top in ("resources", "csit_utils", "tests", "docs")]
    return tuple(sorted(path for top in tops for path in top.rglob("*") if path.suffix in suffixes and path.is_file()))


@cache
def python_sources() -> tuple[str, ...]:
    return tuple(str(file.relative_to(ROOT)) for file in sources(".py"))


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree_of(path: str) -> ast.AST:
    return ast.parse(text_of(path))


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


@cache
def imports(tree: ast.AST) -> tuple[Finding, ...]:
    """Every imported module as a dotted name; relative imports are refused by the linter."""
    found: list[Finding] = []
    for node in walk(tree):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
            # `from package import module` imports the module as well.
            found += ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
    return tuple(found)


def room(name: str) -> str | None:
    """The room of a dotted module name inside the libraries; None for what lies beside the rooms (errors.py)."""
    parts = name.split(".")
    inside = parts[:3] == ["resources", "libraries", "python"] and len(parts) > 3
    if not inside or not (ROOT / LIBRARIES / parts[3]).is_dir():
        return None
    if parts[3] == "drivers" and is_declaration(parts[4:]):
        return "declaration"
    if parts[3:5] == ["testbed", "roles"]:
        return "roles"
    if parts[3] == "studies" and len(parts) > 5 and parts[5] in PURE:
        return parts[5]
    return parts[3]


def is_declaration(below: list[str]) -> bool:
    """Whether a name below the drivers is that of a package that may declare some, or one in its `__init__`."""
    depth = 2 if below[:1] and below[0] in ROLES else 1
    package = ROOT / LIBRARIES / "drivers" / "/".join(below[:depth])
    if len(below) < depth or package.with_suffix(".py").exists():
        return False
    if below[depth:] and below[depth] not in {"__init__", "registration"}:
        inside = package / below[depth]
        return package.is_dir() and not (inside.is_dir() or inside.with_suffix(".py").exists())
    return True


def room_of(path: str) -> str | None:
    return room(path.removesuffix(".py").replace("/", "."))


def pure_rooms_need_no_machine(path: str, tree: ast.AST) -> Iterator[Finding]:
    """The pure rooms of the libraries and `csit_utils/analysis` compute and nothing else."""
    if path == REGISTRY or room_of(path) in PURE or re.match(r"csit_utils/(studies/\w+/)?analysis/", path):
        yield from ((line, f"imports {name}") for line, name in imports(tree) if name.split(".")[0] in MACHINE)


def only_libraries_know_robot(path: str, tree: ast.AST) -> Iterator[Finding]:
    """All other modules log with `logging` and take arguments."""
    ours = path.startswith(("resources/", "csit_utils/")) and not path.startswith(COMPOSITION)
    if ours and not ROBOT.match(path):
        yield from ((line, f"imports {name}") for line, name in imports(tree) if name.split(".")[0] == "robot")


def data_goes_one_way(path: str, tree: ast.AST) -> Iterator[Finding]:
    """Nothing downstream is imported upstream."""
    allowed = UPSTREAM.get(room_of(path) or "")
    for line, name in imports(tree):
        if path.startswith("resources/") and name.split(".")[0] == "csit_utils":
            yield line, f"imports {name}"
        elif allowed is not None and room(name) not in {None, *allowed}:
            yield line, f"imports {name}, which is downstream of {room_of(path)}"


def studies_are_above_the_rest(path: str, tree: ast.AST) -> Iterator[Finding]:
    """What lies below the studies or is shared by them imports none: one is added or removed as a folder."""
    below = path.removeprefix(LIBRARIES)
    is_shared = below.startswith("studies/shared/")
    if below == path or (below.startswith("studies/") and not is_shared):
        return
    for line, name in imports(tree):
        if name.startswith(f"{STUDIES}.") and not (is_shared and name.startswith(f"{STUDIES}.shared")):
            yield line, f"imports {name}"


def offline_tools_touch_no_machine(path: str, tree: ast.AST) -> Iterator[Finding]:
    """Reports start from records. A command may look at the world through two rooms, never name a driver."""
    if path.startswith("csit_utils/") and not path.startswith(COMPOSITION):
        allowed = OFFLINE | {"testbed", "emulation"} if COMMANDS.match(path) else OFFLINE
        yield from ((line, f"imports {name}") for line, name in imports(tree) if room(name) not in {None, *allowed})


def strings(tree: ast.AST) -> Iterator[Finding]:
    """Texts that are no docstrings."""
    prose = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def products_live_in_drivers(path: str, tree: ast.AST) -> Iterator[Finding]:
    """Callers name roles. Docstrings may explain."""
    if (
        path.startswith(("resources/", "csit_utils/"))
        and room_of(path) not in {"drivers", "declaration"}
        and not path.removeprefix(LIBRARIES).startswith(tuple(MAY_NAME_PRODUCTS))
    ):
        yield from ((line, f"says {found[0]}") for line, text in strings(tree) for found in PRODUCTS.finditer(text))


def drivers_name_no_other_product(path: str, tree: ast.AST) -> Iterator[Finding]:
    """A product's words are in its own package, or in one of its name that several packages share."""
    inside = path.removeprefix(LIBRARIES)
    if path.startswith(f"{LIBRARIES}drivers/") and not inside.startswith(tuple(MAY_NAME_OTHERS)):
        parts = set(inside.split("/"))
        for line, text in strings(tree):
            for found in PRODUCTS.finditer("" if text.startswith(f"{DRIVERS}.") else text):
                if not parts & packages_of_products()[found[0].lower()]:
                    yield line, f"says {found[0]}"


def nothing_dangerous(_: str, tree: ast.AST) -> Iterator[Finding]:
    """Argument vectors instead of shell strings; only safe YAML."""
    for node in walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "shell" and getattr(node.value, "value", True) is not False:
            yield node.value.lineno, "passes shell="
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"yaml.load", "os.system", "os.popen"}:
            yield node.lineno, f"calls {ast.unparse(node.func)}"


def broad_excepts_are_boundaries(path: str, tree: ast.AST, text: str | None = None) -> Iterator[Finding]:
    """Catching everything: at a boundary only, and the line says so. Cleaning up and raising again is free."""
    lines = (text_of(path) if text is None else text).splitlines()
    for node in walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)} if node.type else BROAD
            raises_again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if caught & BROAD and not raises_again and BOUNDARY not in lines[node.lineno - 1]:
                yield node.lineno, f"catches everything, and no comment says '{BOUNDARY}'"


Rule = Callable[[str, ast.AST], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    pure_rooms_need_no_machine,
    only_libraries_know_robot,
    data_goes_one_way,
    studies_are_above_the_rest,
    offline_tools_touch_no_machine,
    products_live_in_drivers,
    drivers_name_no_other_product,
    nothing_dangerous,
    broad_excepts_are_boundaries,
)


@pytest.mark.parametrize("exception", [*MAY_NAME_PRODUCTS, *MAY_NAME_OTHERS])
def test_no_exception_outlives_its_reason(exception: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MAY_NAME_PRODUCTS, exception, raising=False)
    monkeypatch.delitem(MAY_NAME_OTHERS, exception, raising=False)
    own = [path for path in python_sources() if path.removeprefix(LIBRARIES).startswith(exception)]
    rules = (products_live_in_drivers, drivers_name_no_other_product)
    assert any(any(rule(path, tree_of(path))) for path in own for rule in rules), "names no product: remove it"


ALSO_OF_TESTS = re.compile(r"shell=|yaml\.load\b|os\.(system|popen)\b|except:|except .*Exception")
"""Without such words, no rule finds anything in a test: most tests need no syntax tree."""


def folder_of(path: str) -> str:
    """A few folders deep: each test takes a moment."""
    return "/".join(path.removeprefix(LIBRARIES).split("/")[:-1][:3])


@pytest.mark.parametrize("folder", sorted({folder_of(path) for path in python_sources()}))
def test_every_file_keeps_to_its_room(folder: str) -> None:
    offences = [
        f"{path}:{line}: {what}\n{rule.__doc__}"
        for path in python_sources()
        if folder_of(path) == folder and (is_production(path) or ALSO_OF_TESTS.search(text_of(path)))
        for rule in RULES
        for line, what in rule(path, tree_of(path))
    ]
    assert not offences, "\n".join(offences)


def test_robot_files_name_no_products() -> None:
    offences = [
        f"{file.relative_to(ROOT)}:{line}: says {found[0]}"
        for file in sources(".robot", ".resource")
        for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for found in PROGRAMS.finditer(text)
    ]
    assert not offences, "\n".join(offences)


def test_no_file_grows_long() -> None:
    paths = (str(file.relative_to(ROOT)) for file in sources(".py", ".robot", ".resource", ".sh", ".j2"))
    lengths = {path: len(text_of(path).splitlines()) for path in paths}
    assert not {path: length for path, length in lengths.items() if length >= MAX_LINES}


def classes(paths: Iterable[str]) -> list[tuple[str, ast.ClassDef]]:
    """Public classes of modules, each with its path."""
    found = [(path, node) for path in paths for node in walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
    return [(path, node) for path, node in found if not node.name.startswith("_")]


def methods(parent: ast.ClassDef) -> list[ast.FunctionDef]:
    return [each for each in parent.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]


def test_class_names_are_used_once_and_only_methods_of_a_protocol_have_no_docstring() -> None:
    """The linter demands docstrings elsewhere (D102); in these folders the Protocol or the base class has it."""
    found = classes(filter(is_production, python_sources()))
    assert {name for name, count in Counter(parent.name for _, parent in found).items() if count > 1} == set()
    ours = [(path, parent) for path, parent in found if path.startswith(LIBRARIES)]
    bases = {ast.unparse(base) for _, parent in ours for base in parent.bases}
    roles = [each for _, each in ours if each.name in bases or "Protocol" in map(ast.unparse, each.bases)]
    described = {method.name for parent in roles for method in methods(parent) if ast.get_docstring(method)}
    assert not [
        f"{path}:{method.lineno}: {parent.name}.{method.name} has no docstring"
        for path, parent in ours
        if path.startswith((f"{LIBRARIES}drivers/", f"{LIBRARIES}testbed/"))
        for method in methods(parent)
        if not ast.get_docstring(method) and method.name not in described
    ]


def is_production(path: str) -> bool:
    return path.startswith(("resources/", "csit_utils/"))


def test_files_of_how_to_pages_keep_to_their_rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once, as in a project that follows both pages."""
    texts = files_of(ADD_A_DRIVER) | files_of(ADD_A_STUDY)
    with added_drivers(tmp_path):
        added = {word.lower(): {each.name} for each in every_driver() for word in each.product_words - PRODUCT_WORDS}
    packages = {**added, **packages_of_products()}
    monkeypatch.setitem(globals(), "packages_of_products", lambda: packages)
    monkeypatch.setitem(globals(), "PRODUCTS", any_of(packages))
    monkeypatch.setitem(globals(), "text_of", texts.__getitem__)
    trees = {path: ast.parse(text) for path, text in texts.items() if path.endswith(".py")}
    assert not [(path, *found) for path, tree in trees.items() for rule in RULES for found in rule(path, tree)]


@pytest.mark.parametrize(
    ("rule", "path", "code"),
    [
        (pure_rooms_need_no_machine, "csit_utils/analysis/x.py", "from time import sleep"),
        (only_libraries_know_robot, f"{LIBRARIES}testbed/x.py", "def f():\n    from robot.api import logger"),
        (data_goes_one_way, f"{LIBRARIES}model/x.py", f"from {DRIVERS} import vswitches"),
        (data_goes_one_way, f"{LIBRARIES}studies/density/x.py", "import csit_utils.report"),
        (studies_are_above_the_rest, f"{LIBRARIES}studies/shared/x.py", f"import {STUDIES}.density.run"),
        (studies_are_above_the_rest, f"{LIBRARIES}drivers/x.py", f"from {STUDIES}.chains.model import Edge"),
        (offline_tools_touch_no_machine, "csit_utils/studies/x_command.py", f"import {DRIVERS}.vswitches.ovs.driver"),
        (products_live_in_drivers, f"{LIBRARIES}testbed/x.py", "argv = ['ovs-vsctl', 'show']"),
        (drivers_name_no_other_product, f"{LIBRARIES}drivers/host/x.py", "program = 'vppctl'"),
        (drivers_name_no_other_product, f"{LIBRARIES}drivers/vswitches/ovs/x.py", "program = 'nginx'"),
        (nothing_dangerous, f"{LIBRARIES}drivers/x.py", "import subprocess as s\ns.run('ls', shell=True)"),
        (nothing_dangerous, "csit_utils/x.py", "import yaml\nyaml.load('a: 1')"),
        (partial(broad_excepts_are_boundaries, text="\n" * 9), "x.py", "try: f()\nexcept Exception as error: g()"),
    ],
)
def test_each_rule_sees_its_offender(rule: Rule, path: str, code: str) -> None:
    assert list(rule(path, ast.parse(code)))


def imported(tree: ast.AST, modules: Collection[str]) -> set[str]:
    """Modules of the project that a module imports, in its functions as well, and for types only."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & set(modules) or {node.module}
    return found & set(modules)


def test_no_modules_import_each_other() -> None:
    paths = [path for path in python_sources() if not path.startswith("tests/")]
    names = {path: path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in paths}
    trees = {name: tree_of(path) for path, name in names.items()}
    TopologicalSorter({name: imported(tree, trees) - {name} for name, tree in trees.items()}).prepare()


def test_helpers_are_not_imported_from_tests() -> None:
    paths = [path for path in python_sources() if path.startswith("tests/") and ".test_" in text_of(path)]
    found = {(path, name) for path in paths for _, name in imports(tree_of(path))}
    assert [each for each in found if re.match(r"tests\.(.*\.)?test_", each[1])] == []
