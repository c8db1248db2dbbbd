"""A test of real packets that fails has a second try on everything made anew, and a run has few second tries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test runs pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests import retries

def pytest_configure(config):
    retries.PAUSE_S = 0.0
    config.pluginmanager.register(retries)
    config.pluginmanager.register(retries.Retries())
"""
SAMPLE = """
import itertools
import pytest

made, ended = itertools.count(1), []

@pytest.fixture(scope="module")
def number():
    mine = next(made)
    yield mine
    ended.append(mine)

def test_a(number):
    assert number == 2 and ended == [1], f"number {number}"

def test_b(number):
    assert number == 2

def test_c(number):
    assert number > 9, f"number {number}"

def test_d(number):
    assert number == 9, f"number {number}"
"""


@pytest.mark.parametrize("argv", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "on a worker"])
def test_a_second_try_has_all_made_anew_and_a_run_has_two(tmp_path: Path, argv: tuple[str, ...]) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_sample.py").write_text(SAMPLE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    argv = (*command, *argv, "--junit-xml", str(tmp_path / "junit.xml"), str(tmp_path))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take most of the time
    environment["CSIT_TEST_RETRIES"] = str(tmp_path / "retries")
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    told = done.stdout + done.stderr
    assert done.returncode == 1 and "2 failed, 2 passed, 2 again" in told, told
    assert [told.count(f"AssertionError: number {number}") for number in range(1, 5)] == [1] * 4, told
    text = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert text.count('name="failed at first" value="AssertionError: number ') == 2
    again = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert "3 failed, 1 passed" in again.stdout and "again" not in again.stdout, again.stdout
