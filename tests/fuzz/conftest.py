"""Fuzzing of everything that is read: a short pass with fixed seeds, or a long one with new inputs.

`./csit test -e fuzz` takes the same inputs in every run; `./csit test -e fuzz -- --inputs 760 -n 2` looks for new ones,
so many for each target, in two processes that take tests from each other.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from csit_utils.cli import COMMANDS, make_app
from csit_utils.studies.registry import studies
from tests.integration.preloaded import complete_models
from tests.local_constants import ignore_local_constants
from tests.simulated.in_process import SIM, robot_words

PROJECT = Path(__file__).resolve().parents[2]
_SHORT = 40
"""Inputs for each target of the short pass."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--inputs", type=int, default=0, help="so many new inputs for each target; 0: the same 40 always")


def pytest_configure(config: pytest.Config) -> None:
    number = config.getoption("--inputs")
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    settings.register_profile(
        "fuzz",
        max_examples=number or _SHORT,
        derandomize=not number,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),  # an input that fails is small enough, and a smaller one takes minutes
        suppress_health_check=checks,
    )
    settings.load_profile("fuzz")
    if not number:
        ignore_local_constants()


@pytest.fixture(scope="session", autouse=True)
def _imported() -> None:
    """What commands import at first takes seconds, and snappi 300 MB: both would count for their first input."""
    for name in COMMANDS:
        make_app([name])
    for module in (
        "csit_utils.analysis.trends.trend",
        "csit_utils.dataset.flatten",
        "csit_utils.dataset.store.batch",
        "csit_utils.dataset.store.stored_contents",
        "csit_utils.report.site",
        "scipy.special",
        "snappi",
    ):
        import_module(module)
    studies()
    complete_models()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path) -> Iterator[None]:
    """Whatever a command writes beside itself, it writes there."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small simulated run and a dataset of it."""
    folder = tmp_path_factory.mktemp("results")
    run, history = folder / "run", folder / "history"
    chosen = ("-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick")
    suites = ("--suite", "csc-ndrpdr", "--suite", "csc-mrr")
    for words in (robot_words(run, SIM, *chosen, *suites), ["import", str(run / "output.xml"), "-o", str(history)]):
        command = [sys.executable, "-m", "csit_utils", *words]  # in its own process: its memory is none of an input
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return folder
