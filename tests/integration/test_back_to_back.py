"""Back-to-back frames on real packets: the buffer is a token bucket of known size in an NF."""

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.search.back_to_back import measure_back_to_back
from tests.integration.local_functions import nft, running

NF = "nf-1-1"
BUCKET = 150
"""Frames of a flow. A queue of a port holds more, so none of them is lost where a data thread waits for its CPU."""
FLOW_PPS = 50_000
FLOWS = 2

NO_NFT = "; ".join(map(str, missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT), pytest.mark.usefixtures("awake")]


def test_the_longest_burst_is_that_of_the_bucket() -> None:
    with running(NfKind("linux_router")) as deployment:
        # A bucket that gets no tokens while a burst comes, however long a busy machine takes for that.
        buckets = " ".join(
            f"iifname {port.interface} limit rate over 1/minute burst {BUCKET} packets drop;"
            for port in deployment.plan.ports(NF)
        )
        table = f"table ip bucket {{ chain c {{ type filter hook forward priority 0; {buckets} }}; }};"

        def burst(trial: Trial) -> TrialResult:
            nft(NF, f"table ip bucket; delete table ip bucket; {table}")
            return deployment.parts.generator.run(trial)

        found = measure_back_to_back(
            burst, frame("64B"), flows=FLOWS, load_pps=FLOWS * FLOW_PPS, throughput_pps=None, repetitions=5
        )
    assert found.frames == (BUCKET,) * 5 and not found.endless, found
    assert found.implied_buffer_s == pytest.approx(BUCKET / (found.offered_pps / FLOWS)), found
