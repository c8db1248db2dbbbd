"""A test of real packets that fails has another try on everything made anew, and one that always fails does fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test runs pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests import realtime

def pytest_configure(config):
    realtime.PAUSE_S, realtime.MAX_FURTHER_TRIES = 0.0, 4
    config.addinivalue_line("markers", "realtime: granted")
    config.pluginmanager.register(realtime)
    config.pluginmanager.register(realtime.Tries())
"""
HEAD = """
import itertools
import pytest
from tests.realtime import LOSS, realtime

made, ended = itertools.count(1), []

@pytest.fixture(scope="module")
def number():
    mine = next(made)
    yield mine
    ended.append(mine)
"""


def run(folder: Path, tests: str, *argv: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_sample.py").write_text(HEAD + tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take most of the time
    argv = (*command, *argv, str(folder))
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("argv", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "on a worker"])
def test_what_a_module_made_is_made_anew_for_another_try(tmp_path: Path, argv: tuple[str, ...]) -> None:
    status, told = run(
        tmp_path,
        "@realtime(LOSS)\ndef test_a(number):\n    assert number == 3 and ended == [1, 2], f'number {number}'\n"
        "@realtime(LOSS)\ndef test_b(number):\n    assert number == 3\n",
        *argv,
    )
    assert status == 0, told
    assert "2 passed, 2 again" in told
    assert told.count("AssertionError: number 1") == 1
    assert told.count("AssertionError: number 2") == 1


def test_one_that_always_fails_fails_with_all_that_happened_and_one_without_the_grant_has_one_try(
    tmp_path: Path,
) -> None:
    tests = "@realtime(LOSS)\ndef test_a(number):\n    assert number > 9\ndef test_b(number):\n    assert number > 8\n"
    status, told = run(tmp_path, tests)
    assert status == 1 and "2 failed, 2 again" in told
    assert all(f"assert {number} > 9" in told for number in (1, 2, 3))


def test_tries_are_counted_in_the_junit_file_and_summed_up(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    tests = "@realtime(LOSS)\ndef test_a(number):\n    assert number > 2\n"
    status, told = run(tmp_path, tests, "--junit-xml", str(file))
    assert status == 0, told
    assert "2 further tries of 1 tests of real-time traffic" in told
    text = file.read_text(encoding="utf-8")
    assert '<property name="tries" value="3" />' in text and 'name="failed at first" value="' in text
