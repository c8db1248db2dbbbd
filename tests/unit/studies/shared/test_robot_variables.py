"""Variables of Robot are read as Robot reads them, and ones that are not set cost nothing."""

import pytest
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError
from robot.variables import Variables

from resources.libraries.python.studies.shared.boundary import announce, variable
from tests.unit.unwritable import UNWRITABLE, unwritable


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Variables:
    """Those of a running test."""
    variables = Variables()
    monkeypatch.setattr(BuiltIn, "_variables", variables)
    return variables


@pytest.mark.parametrize("name", ["NF_SIZES", "nf sizes", "NFSIZES"])
def test_a_variable_is_found_as_robot_finds_it(known: Variables, name: str) -> None:
    known["${NF_SIZES}"] = "1c"
    assert variable(name) == "1c" == known.replace_scalar(f"${{{name}}}")


def test_nothing_is_read_outside_a_run() -> None:
    with pytest.raises(RobotNotRunningError):
        variable("LOSSES")


@pytest.mark.parametrize("lack", UNWRITABLE)
def test_a_sentence_for_the_console_fails_no_test(monkeypatch: pytest.MonkeyPatch, lack: str) -> None:
    with unwritable(lack) as stream:
        monkeypatch.setattr("sys.__stdout__", stream)
        announce("connecting to DUT1")
        announce("the testbed is open")
