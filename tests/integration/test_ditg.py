"""D-ITG's flows through a real router: counted, timed, and nothing left of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.generators.ditg.programs import (
    DitgPrograms,
    Packets,
    Script,
    SenderRun,
    of_flows,
)
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import shipped
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.user_space import cell, prepared, processes, qualified_by_a_run, with_tg

pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.skipif(
        path_of("ITGSend") is None or path_of("sar") is None, reason="D-ITG or sysstat is not installed"
    ),
]
TOPOLOGY = with_tg(shipped("local"), "ditg")
LOAD_PPS = 1000.0
"""Both ways; what D-ITG sends on a busy machine too."""


@contextmanager
def running(*kinds: NfKind, sources: int = 1) -> Iterator[Deployment]:
    """Deploy two services. A trial lasts a second longer for each of the `sources` of each."""
    before, others = network_state(), processes("ITG")
    asked = cell("CSP", 2, max(1, len(kinds)), kinds)
    plan = make_plan(TOPOLOGY, asked, discover(), sources=sources)
    with prepared(TOPOLOGY, asked, plan) as parts, Deployment(plan, parts) as deployment:
        yield deployment
    assert processes("ITG") == others
    wait_for_network_state(before)
    assert not (DIRECTORY / "run" / "ditg").exists()


def test_flows_of_each_protocol_pass_two_services_and_are_counted_and_timed() -> None:
    with running() as deployment:
        for protocol in (Protocol.UDP, Protocol.TCP, Protocol.ICMP):
            trial = Trial(load_pps=LOAD_PPS, duration_s=1, frame=frame("512B"), protocol=protocol, purpose="sweep")
            result = deployment.parts.generator.run(trial)
            assert {flow.instance for flow in result.flows} == {1, 2}
            assert all(flow.sent > 0 for flow in result.flows), result
            assert result.received >= 0.99 * result.sent, result
            assert result.interface_sent == result.sent
            assert result.offered_pps >= 0.5 * LOAD_PPS, result  # it cannot be told more on a busy machine
            assert len(result.intervals) == 1, result
            timed = protocol is not Protocol.ICMP
            assert [each.delay_ns is not None for each in result.intervals] == [timed], result
            # A round trip through two bridges and a router takes microseconds, and on a busy machine milliseconds.
            assert all(1e3 < each.p50_ns < 1e8 for each in result.latency if each.p50_ns is not None), result
        assert deployment.problems() == ()
        assert "D-ITG 2" in deployment.facts()["generator"]["generator"]


@pytest.mark.skipif(bool(list(nft_missing())), reason="; ".join(map(str, nft_missing())))
def test_answers_come_back_through_a_nat() -> None:
    """The receiver sees other addresses than the sender has, and the routers behind know where these are."""
    with running(NfKind("linux_nat"), NfKind("linux_router"), sources=2) as deployment:
        trial = Trial(load_pps=LOAD_PPS, duration_s=1, frame=frame("512B"), protocol=Protocol.UDP, purpose="sweep")
        result = deployment.parts.generator.run(trial)
        assert result.received >= 0.99 * result.sent, result
        assert {(each.instance, each.direction) for each in result.latency if each.mean_ns} == {
            (flow.instance, flow.direction) for flow in deployment.plan.flows
        }, result
        assert deployment.problems() == ()


SPREADS = {
    Departures.CONSTANT: (0.0, 0.3),
    Departures.UNIFORM: (0.35, 0.75),
    Departures.NORMAL: (0.22, 0.55),
    Departures.EXPONENTIAL: (1.1, 2.3),
}
"""Distance of the quartiles of the times between departures over their median: 0, 0.50, 0.34 and 1.58."""
_SPARSE_PPS = 400.0
"""Both ways of two services: 10 ms between packets of a flow, so that late wake-ups of the sender matter little."""


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.ICMP])
def test_times_between_departures_have_the_distribution_that_is_asked_for(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs: list[SenderRun] = []
    run = DitgPrograms.run

    def kept(programs: DitgPrograms, script: Script, seconds: float, interfaces: Sequence[str]) -> SenderRun:
        logs.append(run(programs, script, seconds, interfaces))
        return logs[-1]

    monkeypatch.setattr(DitgPrograms, "run", kept)
    with running() as deployment:
        for departures, (least, most) in SPREADS.items():
            asked = Trial(load_pps=_SPARSE_PPS, duration_s=2, frame=frame("512B"), protocol=protocol, purpose="sweep")
            trial = asked.model_copy(update={"departures": departures})
            result = deployment.parts.generator.run(trial)
            assert all(flow.sent > 0 for flow in result.flows), result
            assert result.received >= 0.99 * result.sent, result
            if protocol is Protocol.UDP:  # of ICMP there is no log to rely on
                spread = quartile_spread(logs[-1].arrived)
                assert least <= spread <= most, (departures, spread)
        assert deployment.problems() == ()


def quartile_spread(log: Packets) -> float:
    """Spread of the times between departures, each flow relative to its mean; few late wake-ups do not change it."""
    gaps = [np.diff(np.sort(of_flows(log, [flow]).sent_s)) for flow in np.unique(log.flow).tolist()]
    assert len(gaps) == 2 and min(map(len, gaps)) > 50, "of two flows, enough packets each"
    low, middle, high = np.quantile(np.concatenate([each / each.mean() for each in gaps]), (0.25, 0.5, 0.75))
    return float((high - low) / middle)


def test_a_run_qualifies_it_once_with_its_ports_joined(tmp_path: Path) -> None:
    (point,) = qualified_by_a_run(TOPOLOGY, tmp_path).points
    assert (point.frame.name, point.flows) == ("66B", 2)
    assert point.highest_pps is not None and point.highest_pps > 500
    assert point.offered_pps >= point.highest_pps * 0.95 and point.received_pps <= point.offered_pps
    assert point.rate_error is not None and point.rate_error <= 0.05
    assert point.floor_ns is not None and 100 < point.floor_ns < 1e7
    assert point.gap_load_pps is not None and point.gap_p50_ns is not None and point.gap_p999_ns is not None
    assert 100 < point.gap_p50_ns <= point.gap_p999_ns < 0.5e9
