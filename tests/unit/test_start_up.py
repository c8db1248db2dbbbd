"""Imports that programs do without when they start, because each start would pay for them."""

import json
import subprocess
import sys

import pytest

from resources.libraries.python.paths import PROJECT

STARTS = {
    # Commands that read results, and runs of the studies: the distributions needed are those of scipy.special.
    "csit_utils.studies.density.results_table": ["scipy.stats", "scipy.optimize", "robot", "pyarrow"],
    "csit_utils.studies.registry; csit_utils.studies.registry.studies()": ["scipy.stats", "scipy.optimize"],
    "resources.libraries.python.studies.density.DensityLibrary": ["scipy", "pyroute2"],
    "resources.libraries.python.studies.sizing.SizingLibrary": ["scipy.stats"],
    "resources.libraries.python.studies.interference.InterferenceLibrary": ["scipy.stats"],
    "resources.libraries.python.studies.chains.ChainStudyLibrary": ["scipy.stats"],
    "resources.libraries.python.testbed.agent.service": ["numpy", "scipy", "robot"],
    # Once per deployment, while data threads poll.
    "resources.libraries.python.drivers.generators.builtin.worker": ["pydantic", "scipy"],
}


@pytest.mark.parametrize("start", STARTS)
def test_programs_start_without(start: str) -> None:
    code = f"import {start}; import json, sys; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True, timeout=120
    )
    assert not set(STARTS[start]) & set(json.loads(done.stdout))
