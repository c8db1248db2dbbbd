"""The reservation's rules: nobody ever has a node while another one may believe to have it."""

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from resources.libraries.python.errors import InUse
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.reservation import Claim, ReservableNode, acquire
from resources.libraries.python.testbed.node.scripts import leases
from resources.libraries.python.testbed.node.scripts.leases import Now, decide
from tests.builders import raising
from tests.unit.examples import share


def claim(token: str, lease_s: float = 100.0, **changes: Any) -> dict[str, Any]:
    given = {"testbed": "lab", "owner": f"{token}@here", "reason": "a test"}
    return {"do": "acquire", "token": token, "lease_s": lease_s, **given, **changes}


def at(seconds: float, boot_id: str = "one", calendar_s: float | None = None) -> Now:
    return Now(boot_id, seconds, 1_800_000_000 + seconds if calendar_s is None else calendar_s)


def held_by_ann() -> dict[str, Any]:
    return decide({}, claim("ann"), at(1000))[0]


def test_the_first_claim_wins_and_the_second_is_refused_with_the_holder_whatever_the_clock() -> None:
    state, said = decide({}, claim("ann", reason="night"), at(1000))
    assert said["won"] and said["took_over"] is None
    after, said = decide(state, claim("bob"), at(1060))
    assert after == state
    assert not said["won"]
    assert (said["holder"]["owner"], said["holder"]["reason"], said["holder"]["left_s"]) == ("ann@here", "night", 40.0)
    for calendar_s in (0.0, 4_000_000_000.0):
        assert not decide(state, claim("bob"), at(1099, calendar_s=calendar_s))[1]["won"]
        assert decide(state, claim("bob"), at(1100, calendar_s=calendar_s))[1]["won"]


def test_a_dead_owner_s_lease_runs_out_and_the_one_who_loses_a_lease_learns_by_whom() -> None:
    state, said = decide(held_by_ann(), claim("bob"), at(1100))
    assert said["won"] and said["took_over"]["owner"] == "ann@here" and said["took_over"]["left_s"] == 0.0
    assert decide(state, {"do": "release", "token": "ann"}, at(1101))[1]["why"].startswith("taken over by bob@here")
    state, said = decide(held_by_ann(), {"do": "break", "owner": "bob@there"}, at(1001))
    assert said["broken"]["owner"] == "ann@here"
    assert "broken by bob@there" in decide(state, {"do": "release", "token": "ann"}, at(1002))[1]["why"]


def test_asking_twice_with_one_token_is_one_lease_never_cut_short_and_no_answer_shows_the_token() -> None:
    state, said = decide(held_by_ann(), claim("ann", 10.0), at(1010))
    assert said["won"] and said["holder"]["left_s"] == 90
    assert state["holder"]["since"] == held_by_ann()["holder"]["since"]
    assert not decide(state, claim("bob"), at(1050))[1]["won"]
    state = held_by_ann()
    for asked in ({"do": "status"}, claim("bob"), {"do": "break"}):
        assert not {"digest", "token"} & set(str(decide(state, asked, at(1001))[1]).replace("'", " ").split())
    assert "ann" not in {value for key, value in state["holder"].items() if key != "owner"}


@pytest.mark.parametrize("token", ["bob", None, ""])
def test_only_the_holder_releases(token: str | None) -> None:
    state = held_by_ann()
    after, said = decide(state, {"do": "release", "token": token}, at(1001))
    assert after == state
    assert "ann@here" in said["why"]


def test_a_reservation_outlives_a_restart_and_not_for_ever_with_a_clock_set_back() -> None:
    state = decide({}, claim("ann", 8 * 3600), at(50_000))[0]
    restarted = at(60, "two", calendar_s=1_800_050_000 + 600)
    said = decide(state, claim("bob"), restarted)[1]
    assert not said["won"] and said["holder"]["left_s"] == 8 * 3600 - 600
    assert decide(state, claim("bob"), at(60, "two", calendar_s=1_800_050_000 + 8 * 3600))[1]["won"]
    state = decide({}, claim("ann", 3600), at(50_000))[0]
    assert not decide(state, claim("bob"), at(3599, "two", calendar_s=0))[1]["won"]
    assert decide(state, claim("bob"), at(3600, "two", calendar_s=0))[1]["won"]


OWNERS, SECONDS, STEPS = st.sampled_from("ab"), st.sampled_from([0, 1, 4, 9, 30]), st.sampled_from([-1e6, -50, 50, 1e6])


class Leases(RuleBasedStateMachine):
    """Owners that ask, hang, die; answers that are late or lost; a node that restarts, or one whose clock is set.

    Not both: after a restart the wall clock decides, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.true_s, self.booted_at_s, self.boots = 10_000.0, 0.0, 0
        self.clock_error_s, self.restarts = 0.0, False
        self.state: dict[str, Any] = {}
        self.ours_until: dict[str, float] = {}
        self.travelling: list[tuple[str, float, dict[str, Any]]] = []

    def now(self) -> Now:
        return Now(str(self.boots), self.true_s - self.booted_at_s, 1e9 + self.true_s + self.clock_error_s)

    @initialize(error_s=STEPS, restarts=st.booleans())
    def set_clock_first(self, error_s: float, restarts: bool) -> None:
        self.clock_error_s, self.restarts = error_s, restarts

    @rule(owner=OWNERS, lease_s=st.sampled_from([10.0, 60.0]), travels_s=SECONDS)
    def ask(self, owner: str, lease_s: float, travels_s: float) -> None:
        sent_s = self.true_s
        self.true_s += travels_s
        self.state, said = decide(self.state, claim(owner, lease_s), self.now())
        self.travelling.append((owner, sent_s, said))

    @rule(owner=OWNERS)
    def ask_and_be_answered(self, owner: str) -> None:
        self.ask(owner, 10.0, 0)
        self.answer_arrives(False, -1)

    @precondition(lambda self: self.travelling)
    @rule(lost=st.booleans(), which=st.integers(0, 100))
    def answer_arrives(self, lost: bool, which: int) -> None:
        owner, sent_s, said = self.travelling.pop(which % len(self.travelling))
        if lost:
            return
        if said["won"]:
            # From before the question was sent: a late answer never makes it longer than that.
            self.ours_until[owner] = max(self.ours_until.get(owner, 0.0), sent_s + said["holder"]["left_s"])

    @rule(owner=OWNERS)
    def die(self, owner: str) -> None:
        self.ours_until.pop(owner, None)
        self.travelling = [each for each in self.travelling if each[0] != owner]

    @rule(owner=OWNERS)
    def release(self, owner: str) -> None:
        self.die(owner)
        self.state, _ = decide(self.state, {"do": "release", "token": owner}, self.now())

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.true_s += seconds

    @precondition(lambda self: not self.restarts)
    @rule(step_s=STEPS)
    def clock_is_set(self, step_s: float) -> None:
        self.clock_error_s += step_s

    @precondition(lambda self: self.restarts)
    @rule(down_s=SECONDS)
    def restart(self, down_s: float) -> None:
        self.true_s += down_s
        self.booted_at_s, self.boots = self.true_s, self.boots + 1

    @invariant()
    def at_most_one_believes_to_have_it(self) -> None:
        believers = [owner for owner, until in self.ours_until.items() if until > self.true_s + 1e-6]
        assert len(believers) <= 1, believers


TestLeases = Leases.TestCase
TestLeases.settings = settings(max_examples=share(150), stateful_step_count=40)


@pytest.mark.parametrize("where", ["holder", "before"])
def test_a_damaged_record_can_be_broken(tmp_path: Path, where: str) -> None:
    whole = decide(held_by_ann(), claim("bob"), at(2000))[0]
    asked = claim("eve", directory=str(tmp_path))
    for key in whole[where]:
        state = {**whole, where: {name: value for name, value in whole[where].items() if name != key}}
        damaged = (state, {**whole, where: {**whole[where], key: []}}, {**whole, where: [key]})
        for text in (*map(json.dumps, damaged), "[" * 100_000, "[]", '{"holder": 1e999}', "", "\x00"):
            (tmp_path / "reservation.json").write_text(text, encoding="utf-8")
            for do in ("acquire", "release", "status"):
                assert "./csit release TOPOLOGY --force" in leases.answer({**asked, "do": do})["failed"]
            broken = leases.answer({"do": "break", "owner": "eve@here", "directory": str(tmp_path)})
            assert broken["broken"] is None and "reservation.json is " in broken["damaged"]
            assert leases.answer(asked)["won"]


def test_a_full_disk_leaves_the_reservation_as_it_is_until_it_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = claim("ann", directory=str(tmp_path))
    assert leases.answer(asked)["won"]
    whole = (tmp_path / "reservation.json").read_text(encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", raising(OSError(errno.ENOSPC, "No space left on device")))
        longer = leases.answer({**asked, "lease_s": 200.0})
        assert longer["failed"].endswith("the reservation cannot be used: No space left on device; make space there")
    assert [each.name for each in tmp_path.glob("reservation.json*")] == ["reservation.json"]
    assert (tmp_path / "reservation.json").read_text(encoding="utf-8") == whole
    assert not leases.answer(claim("bob", directory=str(tmp_path)))["won"]
    assert leases.answer(asked)["won"]


class _Direct(ReservableNode):
    """A node that is asked without a connection; DUT2 ends the command just after it was reserved."""

    def ask(self, do: str, **asked: object) -> dict[str, object]:
        answer = leases.answer({"do": do, "directory": self.directory, **asked})
        if do == "acquire" and str(self.directory).endswith("DUT2"):
            raise SystemExit(143)
        return answer


def test_a_signal_amid_a_reservation_leaves_no_node_reserved(tmp_path: Path) -> None:
    """A pipeline that is aborted while it reserves has no token yet: nothing could give the nodes back for hours."""
    here = LocalConnection()
    nodes = {name: _Direct(here, directory=str(tmp_path / name)) for name in ("DUT1", "DUT2", "TG")}
    with pytest.raises(SystemExit):
        acquire(nodes, Claim(testbed="lab", reason="nightly", lease_s=46_800.0))
    assert {name: node.ask("status")["holder"] for name, node in nodes.items()} == dict.fromkeys(nodes)


def test_a_planted_pipe_does_not_hold_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a generator that is driven over its API is in a folder where all users may write."""
    monkeypatch.setattr(reservation, "_LOCKS", str(tmp_path))
    with reservation.sole_use("TG", "10.0.0.1:8443"):
        (lock,) = tmp_path.iterdir()
        with pytest.raises(InUse), reservation.sole_use("TG", "10.0.0.1:8443"):
            pass
    lock.unlink()
    os.mkfifo(lock)
    signal.alarm(20)
    try:
        with reservation.sole_use("TG", "10.0.0.1:8443"):
            pass
    finally:
        signal.alarm(0)
