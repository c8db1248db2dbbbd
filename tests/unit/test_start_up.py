"""Starts of programs: imports that they do without, because each start would pay for them, and Ctrl-C meanwhile."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

from resources.libraries.python.paths import PROJECT
from tests.integration.preloaded import IMPORTED

STARTS = {
    # Commands that read results, and runs of the studies.
    "csit_utils.studies.density.results_table": ["scipy", "robot", "pyarrow", "plotly"],
    "csit_utils.studies.registry; csit_utils.studies.registry.studies()": ["scipy", "robot", "plotly"],
    "pyarrow, csit_utils.dataset.store.columns as c; c.convert_without_pandas(); pyarrow.array(['a'])": ["pandas"],
    "csit_utils.cli; csit_utils.cli.make_app(['--help'])": ["pydantic", "csit_utils.commands.results.show"],
    "csit_utils.cli; csit_utils.cli.make_app(['plan'])": ["numpy", "scipy", "robot", "paramiko"],
    "resources.libraries.python.studies.density.DensityLibrary": ["MLRsearch", "numpy", "scipy", "pyroute2.netlink"],
    "resources.libraries.python.studies.sizing.run": ["numpy", "scipy", "pyroute2.netlink"],
    "resources.libraries.python.studies.interference.run": ["numpy", "scipy", "pyroute2.netlink"],
    "resources.libraries.python.studies.chains.run": ["MLRsearch", "scipy", "pyroute2.netlink"],
    "resources.libraries.python.studies.outage.run": ["numpy", "scipy", "pyroute2.netlink"],
    "resources.libraries.python.studies.stateful.run": ["numpy", "scipy", "pyroute2.netlink"],
    "resources.libraries.python.studies.sweep.run": ["scipy", "pyroute2.netlink"],
    "resources.libraries.python.testbed.agent.service": ["numpy", "scipy", "robot", "pyroute2.ndb"],
    "resources.libraries.python.testbed.kinds.nodes": ["scipy", "robot", "pyroute2.netlink"],
    # Once per deployment, while data threads poll.
    "resources.libraries.python.drivers.generators.builtin.worker": ["pydantic", "scipy"],
}

QUICK = (
    "csit_utils.cli; csit_utils.cli.make_app(['--help'])",
    "resources.libraries.python.drivers.generators.builtin.worker",
)

SHARED = "resources.libraries.python.studies.shared.StudyLibrary"
"""Imported once for the libraries of all studies, which are forked from there."""
IMPORT_EACH = f"""
import json, os, sys
import {SHARED}
for start in sys.argv[1:]:
    sys.stdout.flush()
    if not (child := os.fork()):
        exec("import " + start)
        print(json.dumps([start, list(sys.modules)]), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(start)
"""


@pytest.fixture(scope="module")
def of_studies() -> dict[str, list[str]]:
    """Modules that each library of a study has imported."""
    code = [sys.executable, "-c", IMPORT_EACH, *(start for start in STARTS if is_of_study(start))]
    done = subprocess.run(code, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=600)
    return dict(map(json.loads, done.stdout.splitlines()))


def is_of_study(start: str) -> bool:
    return start.startswith("resources.libraries.python.studies.")


@pytest.mark.parametrize(
    "start", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in STARTS]
)
def test_programs_start_without(start: str, request: pytest.FixtureRequest) -> None:
    if is_of_study(start):
        modules = request.getfixturevalue("of_studies")[start]
        assert start in modules
    else:
        code = f"import {start}; import json, sys; print(json.dumps(list(sys.modules)))"
        modules = json.loads(printed(code))
    assert not set(STARTS[start]) & set(modules)


def printed(code: str) -> str:
    """Run code in a new interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_no_validator_of_a_model_is_built_before_it_is_used() -> None:
    code = (
        "import resources.libraries.python.recording.records as read;"
        "print([each.__name__ for each in read.RECORDS.values() if each.__pydantic_complete__])"
    )
    assert printed(code) == "[]"


def test_ctrl_c_while_a_command_starts_ends_it_without_a_word() -> None:
    def send() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell without job control ignores it for what it starts by &
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as ./csit does
        os.kill(os.getpid(), signal.SIGINT)

    done = subprocess.run(
        [sys.executable, "-m", "csit_utils", "show", "--help"],
        cwd=PROJECT, capture_output=True, text=True, preexec_fn=send, check=False, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_modules_that_are_imported_before_runs_are_forked_exist() -> None:
    assert [name for name in IMPORTED if find_spec(name) is None] == []
