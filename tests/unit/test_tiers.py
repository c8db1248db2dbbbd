"""How tests are run: the tiers, taking turns, the same examples always, and the table of faults that they prove."""

import ast
import importlib
import tomllib
from configparser import ConfigParser
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults import load
from tests.integration.traffic import BESIDE, takes_turns
from tests.tiers import ALL, Test, added, by_name_only, environments, report

ROOT = Path(__file__).parents[2]
DEFAULT = ("unit", "simulated", "traffic")
"""Folders of the default tier's tests."""
BY_NAME_ONLY = {"spark"}
"""Its packages are larger than all others together."""


def test_every_environment_is_in_a_tier_but_for_those_that_are_named() -> None:
    assert set(environments("")) < set(environments(ALL))
    assert set(by_name_only()) == BY_NAME_ONLY
    assert set(DEFAULT) < set(environments("")) and "emulated" in added()


def test_every_check_votes_and_a_server_runs_the_default_tier() -> None:
    settings = ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini", encoding="utf-8")
    assert not any("ignore_outcome" in settings[name] for name in settings.sections())
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["strict"]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if "./csit" in line] == ["exec ./csit test"]


@pytest.mark.parametrize("folder", DEFAULT)
def test_the_default_tier_needs_no_browser_java_container_virtual_machine_or_second_try(folder: str) -> None:
    helpers = ("browser", "emulated", "lab", "lab_machine", "user_space", "otg_server")
    words = [f"tests.integration.{name} " for name in helpers] + [
        "tests.chromium",
        "tests.retries",
        "tests import retries",
    ]
    for path in (ROOT / "tests" / folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert (
            path.name in {"test_tiers.py", "test_retries.py"}
            or [word for word in words if f"from {word}" in text] == []
        ), path


def test_the_last_line_counts_and_others_have_failures_skips_retries_and_slow_tests() -> None:
    fine = Test(environment="unit", name="a", failed=False, skipped="", cpu_s=0.1, retried="")
    changes: list[dict[str, Any]] = [{}, {"failed": True}, {"cpu_s": 1.5}, {"retried": "lost 2"}]
    tests = [replace(fine, name=f"t{at}", **change) for at, change in enumerate(changes)]
    tests += [replace(fine, skipped="needs root")] * 2 + [replace(fine, skipped="/root/vpp is not there")]
    *lines, last = report(tests, "", 305.2, 411.7).splitlines()
    assert last == "3 passed, 1 failed, 3 skipped"
    assert [line.removeprefix("csit test: unit: ") for line in lines][:5] == [
        "failed: t1", "passed on retry: t3: lost 2", "2 skipped: needs root", "1 skipped: /root/vpp is not there",
        "slow: t2 used 1.5 s of CPU time, the limit is 1 s",
    ]  # fmt: skip
    assert "2 of 7 tests were skipped for lack of root" in lines[5]
    assert f"not run: {', '.join(added())} " in lines[6]
    assert "root" not in report(tests[:4], ALL, 1.0, 1.0)


INTEGRATION = ROOT / "tests" / "integration"


def test_what_needs_root_takes_turns_unless_it_is_known_not_to(tmp_path: Path) -> None:
    names = ("test_call_stacks_local.py", "test_resume.py", "test_node_doctor.py")
    assert [takes_turns(INTEGRATION / name) for name in names] == [True, False, False]
    (tmp_path / "test_new.py").write_text("pytestmark = [pytest.mark.root, pytest.mark.parallel]\n", encoding="utf-8")
    assert takes_turns(tmp_path / "test_new.py")
    for name in BESIDE:  # no exception outlives its reason
        text = (INTEGRATION / name).read_text(encoding="utf-8")
        assert "mark.root" in text and "mark.parallel" in text, name


def examples() -> list[int]:
    drawn: list[int] = []

    @given(st.integers())
    def collect(number: int) -> None:
        drawn.append(number)

    collect()
    return drawn


@pytest.mark.skipif(not settings().derandomize, reason="this profile looks for new examples")
def test_examples_do_not_depend_on_modules_that_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = examples()
    (tmp_path / "module_with_constants.py").write_text(f"NUMBERS = {list(range(1000, 1500))}\n", encoding="ascii")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("module_with_constants")
    assert examples() == before


FAULTS = load()
MIN_FAULTS = 15


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_cell_has_known_codes_and_every_code_is_in_a_cell() -> None:
    used: set[str] = set()
    for columns, rows in FAULTS.tables.values():
        for fault, cells in rows.items():
            assert len(cells) == len(columns) - 1, fault
            codes = [code for cell in cells for code in cell.split(", ")]
            assert {*codes} <= FAULTS.tests.keys() | FAULTS.explanations.keys(), fault
            used |= {*codes}
    assert used == FAULTS.tests.keys() | FAULTS.explanations.keys()
    assert sum(len(section.rows) for section in FAULTS.tables.values()) >= MIN_FAULTS


@pytest.mark.parametrize("code", FAULTS.tests)
def test_a_test_that_a_cell_names_exists(code: str) -> None:
    file, _, name = FAULTS.tests[code].test.partition("::")
    assert name in functions(file)
