"""Commands to daemons of Open vSwitch that have ended, or are about to."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs import program_output
from resources.libraries.python.drivers.vswitches.ovs.daemons import Daemons
from resources.libraries.python.errors import CommandFailed, CsitError

REFUSED = ["sh", "-c", "echo cannot connect: Connection refused >&2; exit 1"]

KILLED = "ovs-vswitchd was killed by SIGKILL; it said last: nothing"


@pytest.mark.parametrize("problem", [KILLED, ""])
def test_a_refused_command_names_the_daemon_that_has_ended(tmp_path: Path, problem: str) -> None:
    daemons: Any = Daemons(tmp_path, "system")
    daemons.forwarder = SimpleNamespace(started=True, problem=lambda: problem)
    daemons.database = SimpleNamespace(problem=lambda: "")
    with pytest.raises(CsitError) as failed:
        daemons._run(REFUSED, 60.0)
    if problem:
        assert str(failed.value) == problem
    else:
        assert isinstance(failed.value, CommandFailed) and "ended with 1: cannot connect" in str(failed.value)


def test_a_command_that_speaks_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_output, "LARGEST_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(CsitError, match="more than 1 MB"):
        Daemons(tmp_path, "system")._run(["yes"], 60.0)
