"""Back-to-back frames on real packets: the buffer is a token bucket of known size in front of an NF."""

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.search.back_to_back import measure_back_to_back
from tests.integration.local_functions import running

RATE_PPS = 10_000
BUCKET = RATE_PPS // 100
"""Frames that the bucket of `rate_limits` takes at once: 10 ms of its rate. A queue of a port holds more, so none of
them is lost where data threads wait for their CPU."""
FLOW_PPS = 50_000
FLOWS = 2

NO_NFT = "; ".join(map(str, missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT), pytest.mark.usefixtures("awake")]


def test_the_longest_burst_is_that_of_the_bucket() -> None:
    lasted_s: dict[int, float] = {}

    with running(NfKind("linux_router"), limits=(Limits(network_pps=RATE_PPS),)) as deployment:

        def burst(trial: Trial) -> TrialResult:
            result = deployment.parts.generator.run(trial)
            frames = round(trial.duration_s * FLOW_PPS)
            if result.received == result.sent:
                lasted_s[frames] = max(lasted_s.get(frames, 0.0), result.offered_duration_s)
            return result

        found = measure_back_to_back(
            burst,
            frame("64B"),
            flows=FLOWS,
            load_pps=FLOWS * FLOW_PPS,
            throughput_pps=FLOWS * RATE_PPS,
            repetitions=5,
        )
    assert not found.endless
    # The bucket gets tokens while a burst comes: by the time that it really took, and none where it came all at once
    # because a data thread waited for its CPU.
    for frames in found.frames:
        assert BUCKET <= frames <= BUCKET + RATE_PPS * lasted_s[frames] + 1, (found, lasted_s)
    flow_pps = found.offered_pps / FLOWS
    refilled = RATE_PPS / flow_pps
    assert BUCKET * (1 - refilled) <= found.corrected_buffer_s * flow_pps <= found.mean_frames * (1 - 0.9 * refilled)
