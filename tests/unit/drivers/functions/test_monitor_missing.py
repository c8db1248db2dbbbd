"""A monitor whose program is not installed says so before anything is started."""

from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.functions.monitor import driver
from resources.libraries.python.drivers.functions.monitor.driver import Monitors, programs
from resources.libraries.python.drivers.functions.monitor.registration import DRIVERS
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.request.kinds import NfKind
from tests.unit.planning.polled_ports import together


@pytest.mark.parametrize("kind", [each.kind for each in DRIVERS])
def test_a_missing_program_is_one_sentence_with_how_to_fix_it(kind: NfKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "path_of", lambda _: None)
    nothing = SimpleNamespace()  # would fail on any use
    program = programs(100, 100)[kind]
    monitors = Monitors(
        together([NfKind("pktstat")]).functions[:1], cast(Fabric, nothing), program, cast(Companions, nothing)
    )
    monitors._functions = tuple(each.model_copy(update={"kind": kind}) for each in monitors._functions)
    with pytest.raises(
        Unsupported, match=rf"^{program.name} missing for NFs of kind {kind}; install it: apt-get install "
    ):
        monitors.start()
