"""A real intrusion detection system as an NF: it alerts by its rules, and every packet that it was given is counted."""

import os
import re
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.monitor.suricata import ALERTS, patterns
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import processes_of
from resources.libraries.python.drivers.host.cgroups.cgroups import discover
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.integration.local_fabric import send
from tests.integration.local_functions import done, running, trial
from tests.integration.user_space import processes

pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.leaves_no("suricata"),
    pytest.mark.skipif(shutil.which("suricata") is None, reason="suricata is not installed"),
]
SURICATA = NfKind("suricata")


def test_every_packet_is_counted_once_though_suricata_empties_the_same_counters_each_second() -> None:
    with running(SURICATA) as deployment:
        sent = 0
        for _ in range(3):
            result = deployment.parts.generator.run(trial().model_copy(update={"duration_s": 1.3}))
            assert result.received == result.sent
            sent += result.sent
            assert done(deployment) == {"nf-1-1": ProcessedPackets(sent, 0)}
        facts = deployment.facts()["functions"][SURICATA]
        assert re.match(r"suricata \d+\.\d+\S*, detects intrusions by 1000 rules", facts)


def test_a_payload_with_a_pattern_of_a_rule_raises_its_alert_and_is_forwarded_all_the_same() -> None:
    pattern = patterns(7)[-1].encode()

    with running(SURICATA) as deployment:
        flow = deployment.plan.flows[0]
        for payload in (bytes(18), pattern.rjust(18, b"\0")):
            namespaces.run_inside("csit-generator", partial(send, flow, 1, payload))
        wait_until("packets", lambda: _missing(deployment, 2), 60.0)
        (words,) = processes("suricata").values()
        place = next(word for word in words.split() if word.endswith("/nf-1-1"))
        wait_until("alert", lambda: "" if _alerts(place) else "there is none", 60.0)
        (alert,) = _alerts(place)
        assert "pattern 7" in alert


def _missing(deployment: Deployment, wanted: int) -> str:
    found = done(deployment)["nf-1-1"]
    return "" if found == ProcessedPackets(wanted, 0) else str(found)


def _alerts(place: str) -> list[str]:
    return Path(place, ALERTS).read_text(encoding="utf-8").splitlines()


def test_it_sees_copies_within_limits() -> None:
    tap = Tap(position=1, kind=SURICATA, limits=Limits(cpu=0.5, memory_mib=256))
    with running(NfKind("linux_router"), taps=(tap,)) as deployment:
        result = deployment.parts.generator.run(trial())
        assert result.received == result.sent
        assert done(deployment) == {
            "nf-1-1": ProcessedPackets(result.sent),
            "tap-1-1": ProcessedPackets(result.sent, 0),
        }
        assert set(processes("suricata")) <= set(processes_of(discover().folders("csit-tap-1-1")))
        held = deployment.parts.functions.throttling()["tap-1-1"]
        assert held.periods > 0, "the kernel counts none where no quota is set"
        assert deployment.facts()["functions"]["limits of tap-1-1"] == "0.5 CPUs, 256 MiB"


def test_one_that_stands_still_or_is_killed_is_named() -> None:
    killed = "suricata of nf-1-1 was killed by SIGKILL"
    with pytest.raises(AssertionError, match=killed), running(SURICATA) as deployment:
        pid = next(iter(processes("suricata")))
        os.kill(pid, signal.SIGSTOP)
        wait_until("its stop", lambda: "" if deployment.problems() else "no problem", 60.0)
        assert deployment.problems() == ("suricata of nf-1-1 is stopped (SIGSTOP)",)
        os.kill(pid, signal.SIGKILL)
