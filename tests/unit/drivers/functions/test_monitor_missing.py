"""A monitor whose program is not installed says so before anything is started."""

from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.monitor.driver import Monitors, programs
from resources.libraries.python.drivers.functions.monitor.registration import DRIVERS
from resources.libraries.python.drivers.host.programs import requirements
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.paths import PROJECT
from tests.unit.planning.polled_ports import together


@pytest.mark.parametrize("kind", [NfKind(each.name) for each in DRIVERS])
def test_a_missing_program_is_one_sentence_with_how_to_fix_it(kind: NfKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "path_of", lambda _: None)
    nothing = SimpleNamespace()  # would fail on any use
    context = cast(DriverContext, SimpleNamespace(fabric=nothing, companions=lambda *_, **__: nothing))
    program = programs(100, 100)[kind]
    (function,) = together([NfKind("pktstat")]).functions[:1]
    node = load_topology(PROJECT / "topologies" / "local.yaml").dut
    monitors = Monitors(node, context, [function.model_copy(update={"kind": kind})])
    with pytest.raises(
        Unsupported, match=rf"^{program.name} missing for NFs of kind {kind}; install it: apt-get install "
    ):
        monitors.start()
