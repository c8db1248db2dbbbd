"""A stand-in for the module `trex.astf.api`, of TCP connections; `StandIn` copies it to where TRex's library would be.

It counts as a server was seen to: connections begin at their rate until the limit of the profile is reached, clients
close as many as were answered, counters of nothing are left out, and those of an earlier profile are there until the
next one is built. `scenario.json` beside it says what goes wrong.
"""

import json
import time
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_BUILT_S = 0.02
_SCENARIO = json.loads((_HERE / "scenario.json").read_text())


def _note(call: str, **arguments: object) -> None:
    with (_HERE / "calls.jsonl").open("a") as file:
        file.write(json.dumps({"call": call, **arguments}) + "\n")


class TRexError(Exception):
    """Of the library."""


class _Record:
    def __init__(self, *_: Any, **named: Any) -> None:
        self.named = named

    def plain(self) -> dict[str, Any]:
        return {name: each.plain() if isinstance(each, _Record) else each for name, each in self.named.items()}


class ASTFProgram(_Record):
    """What an end does."""

    def send(self, content: bytes) -> None:
        self.named["sends"] = content.decode()

    def recv(self, count: int) -> None:
        self.named["receives"] = count

    def wait_for_peer_close(self) -> None:
        self.named["closes"] = "second"


ASTFIPGen = ASTFIPGenDist = ASTFIPGenGlobal = ASTFTemplate = ASTFProfile = _Record
ASTFTCPClientTemplate = ASTFTCPServerTemplate = ASTFAssociationRule = _Record


class ASTFClient:
    """A connection to one server."""

    def __init__(self, **arguments: Any) -> None:
        _note("ASTFClient", **arguments)
        self._refusals = _SCENARIO.get("refusals", 0)
        self._started_s: float | None = None

    def connect(self) -> None:
        if self._refusals:
            self._refusals -= 1
            raise TRexError("*** [RPC] - failed to get response")

    def reset(self) -> None:
        _note("reset")

    def get_port_attr(self, port: int) -> dict[str, str]:
        _note("get_port_attr", port=port)
        return {"link": "DOWN"}

    def get_server_version(self) -> dict[str, str]:
        return {"version": "v3.08", "mode": "ASTF"}

    def get_server_system_info(self) -> dict[str, Any]:
        return {"ports": [{"index": index, "driver": _SCENARIO.get("driver", "net_af_packet")} for index in range(2)]}

    def load_profile(self, profile: _Record, pid_input: str) -> None:
        self._profile = profile.plain()
        _note("load_profile", pid_input=pid_input, **self._profile)

    def wait_for_steady(self, profile_id: str) -> None:
        _note("wait_for_steady", profile_id=profile_id)

    def start(self, duration: float, nc: bool, block: bool, pid_input: str) -> None:
        _note("start", duration=duration, nc=nc, block=block, pid_input=pid_input)
        if _SCENARIO.get("refused"):
            raise TRexError("the profile has no flows")
        self._started_s = time.monotonic() + _BUILT_S

    def stop(self, block: bool, pid_input: str) -> None:
        _note("stop", block=block, pid_input=pid_input)

    def get_tg_names(self, pid_input: str) -> list[str]:
        del pid_input
        name = self._profile["templates"]["tg_name"]
        return [name] if self._started_s is not None and time.monotonic() > self._started_s else ["earlier"]

    def get_traffic_tg_stats(self, names: list[str], pid_input: str) -> dict[str, dict[str, dict[str, int]]]:
        template = self._profile["templates"]["client_template"]
        assert names == self.get_tg_names(pid_input) and self._started_s is not None
        passed_s = time.monotonic() - self._started_s
        begun = min(template["limit"], int(passed_s * template["cps"] * _SCENARIO.get("speed", 1.0)))
        lost = min(begun, _SCENARIO.get("lost", 0))
        all_closed_s = template["limit"] / template["cps"] + _SCENARIO.get("pause_s", 0)
        late = min(begun - lost, 10) if passed_s < all_closed_s else 0
        reset = min(begun - lost, _SCENARIO.get("reset", 0))
        client = {
            "tcps_connattempt": begun,
            "tcps_connects": begun - lost,
            "tcps_closed": begun - lost - late,
            "tcps_drops": reset,
            "tcps_rexmttimeo_syn": _SCENARIO.get("repeated", 0),
            "err_no_memory": _SCENARIO.get("errors", 0),
        }
        sides = (("client", client), ("server", {"tcps_accepts": begun - lost}))
        return {names[0]: {side: {name: count for name, count in rows.items() if count} for side, rows in sides}}

    def is_traffic_stats_error(self, stats: dict[str, dict[str, int]]) -> tuple[bool, dict[str, dict[str, str]]]:
        found = {side: {name: "help" for name in rows if name.startswith("err_")} for side, rows in stats.items()}
        return any(found.values()), found
