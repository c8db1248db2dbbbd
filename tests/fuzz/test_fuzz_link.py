"""Lines of an agent: an answer, or a short error at once."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.dialogue import LONGEST_ERROR
from resources.libraries.python.errors import CsitError
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import BY_NAME, Call
from resources.libraries.python.testbed.remote.link import AgentLink
from tests.fuzz.damage import damaged
from tests.fuzz.oracle import refused
from tests.unit.testbed.scripted_channel import ScriptedChannel

TOKENS = (*'{}[]:,"\n', "[" * 1500, "null", "9" * 5000, "\\ud800", "NaN", '"id":[1]', '"error":')


def accepts_nothing(call: Call[Any, Any]) -> bool:
    """Whether it has no arguments."""
    try:
        call.asks.validate_python(())
    except ValueError:
        return False
    return True


ASKED: list[tuple[Call[Any, Any], object]] = [
    (calls.LEFTOVERS, None),
    (calls.FINGERPRINT, None),
    *((each.call, ()) for each in BY_NAME.values() if accepts_nothing(each.call)),
]
ANSWERS = "\n".join(
    json.dumps(record)
    for record in (
        {"beat": True},
        {"id": 1, "value": ["a veth pair is left"]},
        {"id": 1, "value": {"csit-p1": {"rx_packets": 1, "tx_packets": 2}}},
        {"id": 1, "error": {"class": "NotReady", "what": "carrier", "after_s": 3.0, "last_seen": "down"}},
        {"id": 1, "error": {"class": "CommandFailed", "argv": ["ip", "link"], "status": 2, "stderr": "no"}},
    )
)


@given(data=st.data())
def test_lines_of_agents(data: st.DataObject) -> None:
    stream = data.draw(damaged(ANSWERS, TOKENS)).encode(errors="surrogatepass") + b"\n"
    cut, asked = data.draw(st.integers(1, 4000)), data.draw(st.sampled_from(ASKED))
    channel = ScriptedChannel([*(stream[at : at + cut] for at in range(0, len(stream), cut)), b""])

    def ask() -> None:
        link = AgentLink("DUT1", channel, silence_s=30.0)
        try:
            try:
                link.call(*asked)
            except (CsitError, OSError, RuntimeError) as error:  # those of a driver, as they are
                assert len(str(error)) < 2 * LONGEST_ERROR
        finally:
            link.close()

    refused("link", ask)
