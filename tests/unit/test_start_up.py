"""Starts of programs: imports that they do without, because each start would pay for them, and Ctrl-C meanwhile."""

import json
import os
import signal
import subprocess
import sys

import pytest

from resources.libraries.python.paths import PROJECT

STARTS = {
    # Commands that read results, and runs of the studies.
    "csit_utils.studies.density.results_table": ["scipy", "robot", "pyarrow", "plotly"],
    "csit_utils.studies.registry; csit_utils.studies.registry.studies()": ["scipy", "robot", "plotly"],
    "pyarrow, csit_utils.dataset.store.tables as c; c.convert_without_pandas(); pyarrow.array(['a'])": ["pandas"],
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


@pytest.mark.parametrize(
    "start", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in STARTS]
)
def test_programs_start_without(start: str) -> None:
    code = f"import {start}; import json, sys; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert not set(STARTS[start]) & set(json.loads(done.stdout))


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
