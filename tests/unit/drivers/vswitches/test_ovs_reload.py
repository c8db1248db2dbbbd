"""A reload of Open vSwitch's rules: its file is there before the event begins, which only loads it."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.vswitches.ovs.daemons import Daemons
from resources.libraries.python.drivers.vswitches.ovs.driver import OpenVSwitch
from resources.libraries.python.drivers.vswitches.ovs.registration import Ovs
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.planning.names import VSWITCH
from tests.builders import cpus, plan_of, shipped

RULES = 300


def test_rules_of_a_reload_are_written_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Sequence[str]] = []

    def run(argv: Sequence[str], _within_s: float) -> str:
        commands.append(argv)
        return "cookie=0x1, drop\n" * RULES

    node: Any = SimpleNamespace(settings=lambda _: Ovs(openflow_rules=RULES))
    plan = plan_of(shipped("local-ovs"), "CSC", 1, 1, cpus(16))
    switch: Any = OpenVSwitch(node, DriverContext(plan, Mock(), Mock(), 1518))
    switch._daemons = Daemons(tmp_path, "system")
    monkeypatch.setattr(switch._daemons, "_run", run)
    steps = switch.steps(VSWITCH, PartEvent.RELOAD)
    (file,) = tmp_path.glob("*.rules")
    text = file.read_text(encoding="utf-8")
    assert text.count("cookie=1,") == RULES + 1 and not commands
    monkeypatch.setattr(switch._daemons, "write_rules", Mock(side_effect=AssertionError))
    steps.begin()
    assert [argv[-3:] for argv in commands] == [["replace-flows", f"unix:{tmp_path}/csit.mgmt", str(file)]]
    assert file.read_text(encoding="utf-8") == text
    with pytest.raises(CsitError, match=f"^Open vSwitch has {RULES} of the {RULES + 1} OpenFlow rules"):
        steps.after()
