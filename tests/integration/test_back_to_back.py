"""Back-to-back frames on real packets: the buffer is a token bucket of known size in an NF."""

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.search.back_to_back import measure_back_to_back
from tests.integration.local_functions import named, nft, running

NF = "nf-1-1"
BUCKET = 100
"""Frames of a flow. Queues of ports hold twice as many, so none is lost where a data thread waits for its CPU."""
FLOW_PPS = 50_000
FLOWS = 2
MAX_TRIES = 20

NO_NFT = "; ".join(map(str, missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT), pytest.mark.usefixtures("awake")]


def test_the_longest_burst_is_that_of_the_bucket() -> None:
    with running(NfKind("linux_router")) as deployment:
        # A bucket that gets no tokens while a burst comes, however long a busy machine takes for that.
        buckets = " ".join(
            f"iifname {port.interface} limit rate over 1/minute burst {BUCKET} packets counter name lost drop;"
            for port in deployment.plan.ports(NF)
        )
        chain = f"chain c {{ type filter hook forward priority 0; {buckets} counter name passed; }};"
        table = f"table ip bucket {{ counter lost {{ }}; counter passed {{ }}; {chain} }};"

        def arrived() -> int:
            return sum(port.rx_packets for port in deployment.parts.generator.counters().values())

        def burst(trial: Trial) -> TrialResult:
            """Send a burst until the generator has read its counters when all of it had come."""
            for _ in range(MAX_TRIES):
                nft(NF, f"table ip bucket; delete table ip bucket; {table}")
                before = arrived()
                result = deployment.parts.generator.run(trial)

                def under_way(sent: int = result.sent, before: int = before) -> str:
                    counted, there = named(NF), arrived() - before
                    whole = counted["passed"] + counted["lost"] == sent and there == counted["passed"]
                    return "" if whole else f"sent {sent}, {counted}, arrived {there}"

                wait_until("all frames of a burst", under_way, 30.0, pause_s=0.01)
                if result.received == arrived() - before:
                    return result
            raise AssertionError(f"the counters were read too early {MAX_TRIES} times in a row")

        found = measure_back_to_back(
            burst, frame("64B"), flows=FLOWS, load_pps=FLOWS * FLOW_PPS, throughput_pps=None, repetitions=5
        )
    assert found.frames == (BUCKET,) * 5 and not found.endless, found
    assert found.implied_buffer_s == pytest.approx(BUCKET / (found.offered_pps / FLOWS)), found
