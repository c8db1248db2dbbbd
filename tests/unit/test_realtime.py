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
SAMPLE = """
import itertools
import pytest
from tests.realtime import LOSS, realtime

made, ended = itertools.count(1), []

@pytest.fixture(scope="module")
def number():
    mine = next(made)
    yield mine
    ended.append(mine)

@realtime(LOSS)
def test_a(number):
    assert number == 3 and ended == [1, 2], f"number {number}"

@realtime(LOSS)
def test_b(number):
    assert number == 3

@realtime(LOSS)
def test_c(number):
    assert number > 9

def test_without_the_grant(number):
    assert number > 9
"""


@pytest.mark.parametrize("argv", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "on a worker"])
def test_what_a_module_made_is_made_anew_for_another_try_and_tries_are_counted(
    tmp_path: Path, argv: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_sample.py").write_text(SAMPLE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    argv = (*command, *argv, "--junit-xml", str(tmp_path / "junit.xml"), str(tmp_path))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take most of the time
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    told = done.stdout + done.stderr
    assert done.returncode == 1 and "2 failed, 2 passed, 4 again" in told, told
    assert [told.count(f"AssertionError: number {number}") for number in (1, 2)] == [1, 1]
    assert all(f"assert {number} > 9" in told for number in (3, 4, 5))
    assert "4 further tries of 2 tests of real-time traffic" in told
    text = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="tries" value="3" />' in text and 'name="failed at first" value="' in text
