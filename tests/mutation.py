"""Mutation testing of the pure modules: change their code in one place at a time, count the changes that tests notice.

Run by `./csit test -e mutation [-- FILE-OR-FOLDER ...]`; settings are in pyproject.toml. A change that no test notices
(a survivor) is printed: it lacks a test, or is equivalent to the original. mutmut changes the bodies of functions;
`--constants` changes the numbers outside them instead. `--sample` tests a random part of the changes of each module.
"""

import argparse
import ast
import gc
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import TypeVar

import pytest

from tests.mutation_constants import changes

Item = TypeVar("Item")
ROOT = Path(__file__).resolve().parents[1]
MUTMUT = str(Path(sys.executable).with_name("mutmut"))
SOURCES = ("resources", "csit_utils")
NEEDED = (*SOURCES, "tests", "topologies", "docs", "jenkins")
STATISTICS = "mutmut-stats.json"
"""File in which mutmut keeps how long each test takes."""
_NOT_COUNTED = (34, 37)
"""Exit codes by which mutmut tells mutants that were left out."""
_UNNOTICED = {0: "survived", 33: "no test runs it", None: "not tested"}
_NICE = 10
_CONFIDENCE = 0.95
_TIMES_SLOWER = 5
"""Tests of a changed number may take so many times what they take without a change."""


@dataclass(frozen=True)
class Settings:
    """[tool.mutation] of pyproject.toml."""

    least_score: float
    """Percent of its mutants that the tests of a module have to notice; of a sample, the upper end of the interval."""
    memory_gib: int
    """Address space of a process: a mutant may ask for memory without end."""
    tests: Mapping[str, Sequence[str]]
    """Files and folders of tests by folder of modules, or by module: nothing else is changed, no other tests run."""


@dataclass(frozen=True)
class Sampling:
    """How many mutants of each module are tested: all, or a random sample."""

    size: int | None = None
    seed: int = 0

    def of(self, every: Sequence[Item]) -> list[Item]:
        """The sample in its original order; the same for as many mutants, wherever their module is."""
        if self.size is None or self.size >= len(every):
            return list(every)
        return [every[place] for place in sorted(random.Random(self.seed).sample(range(len(every)), self.size))]


@dataclass(frozen=True)
class Score:
    """Tested mutants of a module, and those that no test noticed."""

    module: str
    mutants: int
    """Tested ones."""
    unnoticed: Mapping[str, str]
    """By name of the mutant: its fate."""
    of: int
    """Mutants of the module, tested or not."""

    @property
    def percent(self) -> float:
        """Share of the tested mutants that a test noticed; of none, all."""
        return 100 * (1 - len(self.unnoticed) / self.mutants) if self.mutants else 100.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson interval of the share among all mutants of the module, in percent; a point where all were tested."""
        if self.mutants == self.of:
            return self.percent, self.percent
        from scipy.stats import binomtest  # as a plugin of pytest this module has to load quickly

        found = binomtest(self.mutants - len(self.unnoticed), self.mutants).proportion_ci(_CONFIDENCE, "wilson")
        return 100 * found.low, 100 * found.high

    def __str__(self) -> str:
        low, high = self.interval
        share = f"{self.percent:5.1f} %  {self.mutants - len(self.unnoticed):4} of {self.mutants:4} mutants noticed"
        return f"{share}{f'  [{low:.1f}, {high:.1f}] of {self.of}' if self.mutants < self.of else ''}  {self.module}"


def total(found: Sequence[Score]) -> Score:
    """Score of all modules, in which each tested mutant counts the same."""
    unnoticed = {name: fate for score in found for name, fate in score.unnoticed.items()}
    return Score("all", sum(score.mutants for score in found), unnoticed, sum(score.of for score in found))


def read_settings(text: str) -> Settings:
    """Settings from the text of pyproject.toml."""
    return Settings(**tomllib.loads(text)["tool"]["mutation"])


def chosen(paths: Sequence[str], rooms: Iterable[str], root: Path = ROOT) -> dict[str, list[str]]:
    """The modules to change, by folder; without paths those of all folders.

    Args:
        paths: Files and folders, relative to the project or to the current folder.
        rooms: Folders whose modules may be changed, and modules with tests of their own.
        root: Of the project.

    Raises:
        ValueError: A path is in none of the folders, or there is nothing at it.
    """
    found: dict[str, list[str]] = {}
    for path in paths or tuple(rooms):
        whole = (root / path).resolve()
        if _room(whole, rooms, root) is None:
            raise ValueError(f"{path} is in none of the folders of pure modules: {', '.join(rooms)}")
        files = sorted(whole.rglob("*.py")) if whole.is_dir() else [whole]
        if not files or not all(file.is_file() for file in files):
            raise ValueError(f"{path}: no such Python module")
        for file in files:
            row = found.setdefault(str(_room(file, rooms, root)), [])
            row += [name] if (name := file.relative_to(root).as_posix()) not in row else []
    return found


def _room(path: Path, rooms: Iterable[str], root: Path) -> str | None:
    """The innermost of the rooms that a path is in."""
    around = [room for room in rooms if path == root / room or root / room in path.parents]
    return max(around, key=len, default=None)


def configured(text: str, modules: Sequence[str], tests: Sequence[str]) -> str:
    """pyproject.toml with these modules and tests in the settings of mutmut.

    Raises:
        ValueError: There are no settings of mutmut.
    """
    head = "[tool.mutmut]\n"
    if text.count(head) != 1:
        raise ValueError("pyproject.toml has no section [tool.mutmut]")
    choice = f"only_mutate = {json.dumps(modules)}\npytest_add_cli_args_test_selection = {json.dumps(tests)}\n"
    return text.replace(head, head + choice)


def mutants(module: str) -> list[str]:
    """Names that mutmut gives the mutants of a module of the project."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    made = mutate_file_contents(module, (ROOT / module).read_text(encoding="utf-8"))
    return [get_mutant_name(Path(module), name) for name in made.mutant_names]


def scores(folder: Path, modules: Iterable[str], sample: Sequence[str] | None = None) -> Iterator[Score]:
    """Results that mutmut wrote of each module; those without a function have no mutants.

    Args:
        folder: In which mutmut ran.
        modules: Of the project.
        sample: Names of the mutants to count; by default all.

    Raises:
        ValueError: It wrote nothing of a module that has functions.
    """
    for module in modules:
        file = folder / "mutants" / f"{module}.meta"
        if not file.exists() and _has_functions(folder / module):
            raise ValueError(f"{module}: mutmut made no mutants of its functions")
        codes = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"] if file.exists() else {}
        every = {name: code for name, code in codes.items() if code not in _NOT_COUNTED}
        counted = every if sample is None else {name: every[name] for name in sample if name in every}
        unnoticed = {name: _UNNOTICED[code] for name, code in counted.items() if code in _UNNOTICED}
        yield Score(module, len(counted), unnoticed, len(every))


def _has_functions(path: Path) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def mutate(folder: Path, modules: Sequence[str], tests: Sequence[str], workers: int, sampling: Sampling) -> list[Score]:
    """Run mutmut in a folder of its own, which has links to the project: only copies are changed.

    Raises:
        subprocess.CalledProcessError: mutmut failed; what it said is printed.
    """
    for name in NEEDED:
        (folder / name).symlink_to(ROOT / name)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(configured(text, modules, tests), encoding="utf-8")
    sample = None
    if sampling.size is not None:
        sample = [name for module in modules for name in sampling.of(mutants(module))]
    if sample != []:
        _run_mutmut(folder, workers, sample or ())
    found = list(scores(folder, modules, sample))
    for score in found:
        for name, fate in score.unnoticed.items():
            shown = subprocess.run([MUTMUT, "show", name], cwd=folder, check=True, capture_output=True, text=True)
            print(f"\n{fate}: {name}", *shown.stdout.splitlines()[1:], sep="\n", flush=True)
    return found


def _run_mutmut(folder: Path, workers: int, names: Sequence[str]) -> None:
    """Show its progress on a terminal; elsewhere print its output only when it fails."""
    argv = [MUTMUT, "run", "--max-children", str(workers), *names]
    code, said = _run(argv, folder, quiet=not sys.stdout.isatty())
    if code:
        print(said.rpartition("\r")[2], flush=True)
        raise subprocess.CalledProcessError(code, argv)


def _run(argv: Sequence[str], folder: Path, quiet: bool = True, timeout_s: float | None = None) -> tuple[int, str]:
    """Status of a command, and its output if it is not to be shown; whatever it started ends with it."""
    shown = subprocess.PIPE if quiet else None
    with subprocess.Popen(argv, cwd=folder, stdout=shown, stderr=quiet and subprocess.STDOUT, process_group=0) as run:
        try:
            said, _ = run.communicate(timeout=timeout_s)
        except BaseException:  # boundary: whatever ends this, no test of a mutant stays
            os.killpg(run.pid, signal.SIGKILL)
            raise
    return run.returncode, (said or b"").decode()


def mutate_constants(folder: Path, modules: Sequence[str], tests: Sequence[str], sampling: Sampling) -> list[Score]:
    """Run the tests for each change of a number outside functions, in a folder of its own.

    Raises:
        subprocess.CalledProcessError: The tests fail without a change; what they said is printed.
    """
    for name in NEEDED:
        if name in SOURCES:
            shutil.copytree(ROOT / name, folder / name)
        else:
            (folder / name).symlink_to(ROOT / name)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    # Without -B a change within the same second and of the same length would run the module before it.
    options = tomllib.loads(text)["tool"]["mutmut"]["pytest_add_cli_args"]
    argv = [sys.executable, "-B", "-m", "pytest", "-x", *options, *tests]
    began = time.monotonic()
    code, said = _run([*argv, "-vv", "--durations=0"], folder)
    if code:
        print(said, flush=True)
        raise subprocess.CalledProcessError(code, argv)
    limit_s = _TIMES_SLOWER * (time.monotonic() - began)
    (folder / STATISTICS).write_text(json.dumps({"duration_by_test": _durations(said)}), encoding="utf-8")
    return [_changed(folder, module, [*argv, "-q"], limit_s, sampling) for module in modules]


def _durations(said: str) -> dict[str, float]:
    """Seconds by test, from pytest's list of the slowest."""
    found: dict[str, float] = {}
    for seconds, _phase, test in re.findall(r"^(\d+\.\d+)s (call|setup|teardown) +(\S.*?) *$", said, re.MULTILINE):
        found[test] = found.get(test, 0.0) + float(seconds)
    return found


def _changed(folder: Path, module: str, argv: Sequence[str], limit_s: float, sampling: Sampling) -> Score:
    file = folder / module
    text = file.read_text(encoding="utf-8")
    unnoticed = {}
    every = list(changes(text))
    tested = sampling.of(every)
    for change in tested:
        file.write_text(change.text, encoding="utf-8")
        try:
            code, _ = _run(argv, folder, timeout_s=limit_s)
        except subprocess.TimeoutExpired:
            continue  # noticed, as mutmut counts it
        if not code:
            name = f"{module}:{change.line}: {change.before} -> {change.after}"
            unnoticed[name] = "survived"
            print(f"survived: {name}: {text.splitlines()[change.line - 1].strip()}", flush=True)
    file.write_text(text, encoding="utf-8")
    return Score(module, len(tested), unnoticed, len(every))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """As a plugin of pytest: quick tests of quick files first, by their time without a mutant; one failure ends it.

    mutmut tests mutants in forks of the process that has run all tests without one: what `functools.cache` kept there
    would be taken for the answers of the mutant.
    """
    for kept in gc.get_objects():
        if isinstance(kept, _lru_cache_wrapper):
            kept.cache_clear()
    stats = Path(STATISTICS)
    if stats.exists():
        took = json.loads(stats.read_text(encoding="utf-8"))["duration_by_test"]
        files: Counter[Path] = Counter()
        for item in items:
            files[item.path] += took.get(item.nodeid, 0.0)
        items.sort(key=lambda item: (files[item.path], str(item.path), took.get(item.nodeid, 0.0)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Mutate the modules, print the score of each; 1 where one is below the least, 2 for a wrong path."""
    settings = read_settings((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help=f"modules or folders; by default {', '.join(settings.tests)}")
    parser.add_argument("--workers", type=int, choices=range(1, (os.cpu_count() or 1) + 1), default=1)
    parser.add_argument("--least", type=float, default=settings.least_score, help="percent; by default %(default)g")
    parser.add_argument("--constants", action="store_true", help="change numbers outside functions instead, one worker")
    parser.add_argument("--sample", type=_positive, metavar="N", help="test N random mutants of each module")
    parser.add_argument("--seed", type=int, default=0, help="of the sample; by default %(default)d")
    asked = parser.parse_args(arguments)
    try:
        rooms = chosen(asked.paths, settings.tests)
    except ValueError as error:
        parser.error(str(error))
    sampling = Sampling(asked.sample, asked.seed)
    os.nice(_NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory_gib << 30,) * 2)
    found: list[Score] = []
    for room, modules in rooms.items():
        with tempfile.TemporaryDirectory(prefix="csit-mutation-") as folder:
            if asked.constants:
                found += mutate_constants(Path(folder), modules, settings.tests[room], sampling)
            else:
                found += mutate(Path(folder), modules, settings.tests[room], asked.workers, sampling)
    print()
    low = [score for score in found if score.interval[1] < asked.least]
    for score in found:
        print(f"{score}{'  below the least score' if score in low else ''}")
    if len(found) > 1:
        print(total(found))
    return int(bool(low))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


if __name__ == "__main__":
    sys.exit(main())
