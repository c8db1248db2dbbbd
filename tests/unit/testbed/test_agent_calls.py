"""Calls of an agent, each as the first one of a process: its validators can be built without those of others."""

import json
import subprocess
import sys

import pytest

from resources.libraries.python.paths import PROJECT
from resources.libraries.python.testbed.agent.calls import BY_NAME, CALLS

USE = """
import json, os, sys
from pydantic import ValidationError
from resources.libraries.python.testbed.agent.calls import BY_NAME, CALLS

def used(validator):
    try:
        validator.validate_python(object())
    except ValidationError:
        pass
    return validator.pydantic_complete

for call in (*CALLS.values(), *(each.call for each in BY_NAME.values())):
    for side in ("asks", "gives"):
        if child := os.fork():
            os.waitpid(child, 0)
            continue
        try:
            outcome = used(getattr(call, side))
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(json.dumps([call.name, side, outcome]), flush=True)
        os._exit(0)
"""
"""Uses each validator in a process that has used no other one: pydantic builds them, and the models in them, then."""


@pytest.mark.slow
def test_validators_of_each_call_can_be_built_first() -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=PROJECT, capture_output=True, text=True, check=True, timeout=600
    )
    outcomes = {(name, side): outcome for name, side, outcome in map(json.loads, done.stdout.splitlines())}
    assert {key: outcome for key, outcome in outcomes.items() if outcome is not True} == {}
    assert outcomes.keys() == {(name, side) for name in (*CALLS, *BY_NAME) for side in ("asks", "gives")}
