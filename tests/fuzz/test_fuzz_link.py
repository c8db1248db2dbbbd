"""Lines of an agent, of a worker and of a node's reservation: an answer, or a short error at once."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.dialogue import LONGEST_ERROR, JsonLines, error_of
from resources.libraries.python.errors import CsitError
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import BY_NAME, Call
from resources.libraries.python.testbed.node.scripts import leases
from resources.libraries.python.testbed.remote.link import AgentLink
from tests.fuzz.damage import damaged
from tests.fuzz.oracle import refused
from tests.unit.testbed.scripted_channel import ScriptedChannel

TOKENS = (
    "{",
    "}",
    "[",
    "]",
    "[" * 1500,
    ":",
    ",",
    '"',
    "\n",
    "null",
    "9" * 5000,
    "\\ud800",
    "NaN",
    '"id":[1]',
    '"error":',
)


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
HELD = {
    "holder": {
        **{"testbed": "lab", "owner": "ann@here", "pid": 1, "reason": "a test", "heartbeat": True, "digest": "00"},
        **{"since": "2026-01-01T00:00:00Z", "renewed": "2026-01-01T00:00:00Z", "boot_id": "one"},
        **{"lease_s": 100.0, "until_since_boot_s": 1e6, "until_calendar_s": 2e9},
    },
    "before": {"digest": None, "how": "released", "by": "bob@here", "at": "2026-01-01T00:00:00Z"},
}


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


@given(data=st.data())
def test_lines_of_workers(data: st.DataObject) -> None:
    stream = data.draw(damaged(ANSWERS, TOKENS)).encode(errors="surrogatepass") + b"\n"
    cut = data.draw(st.integers(1, 4000))

    def read() -> None:
        lines = JsonLines()
        for at in range(0, len(stream), cut):
            for record in lines.feed(stream[at : at + cut]):
                assert str(error_of(record.get("error"), "worker"))

    refused("worker", read)


@given(data=st.data())
def test_records_of_reservations(tmp_path: Path, data: st.DataObject) -> None:
    text = data.draw(damaged(json.dumps(HELD), TOKENS))
    do = data.draw(st.sampled_from(["acquire", "renew", "release", "status"]))
    folder = tmp_path / "node"
    folder.mkdir(exist_ok=True)
    (folder / "reservation.json").write_text(text, encoding="utf-8", errors="replace")
    claim = {"testbed": "lab", "owner": "bob@here", "pid": 2, "reason": "", "heartbeat": True, "token": "t"}
    asked = {"directory": str(folder), "lease_s": 60.0, **claim}

    def ask() -> None:
        answer = leases.answer({"do": do, **asked})
        json.dumps(answer)
        if "failed" in answer:
            raise CsitError(answer["failed"])

    refused("reservation", ask)
    assert "broken" in leases.answer({"do": "break", **asked})
    assert leases.answer({"do": "acquire", **asked})["won"]
