"""Rules of firewalls and NATs from a plan, connections of the kernel, and a machine without the program for them."""

import errno
import re
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from resources.libraries.python.drivers.functions.nftables import driver as nftables
from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.functions.nftables.driver import NftablesRouters
from resources.libraries.python.drivers.functions.nftables.rulesets import firewall, gateway
from resources.libraries.python.drivers.host.programs import program_output
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import Deletion
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.kinds import machine
from tests.builders import cpus, plan_of, shell_program, shipped

LACK = (
    "nft missing for NFs of kind linux_firewall, linux_stateful_firewall, linux_nat and linux_gateway; install it: "
    "apt-get install nftables"
)


def row(kind: str) -> Sequence[NfPlan]:
    return plan_of("local", "CSP", cores=cpus(16), nf_kinds=(NfKind(kind),)).functions


@pytest.mark.parametrize("rules", [1, 2, 100, 1000])
def test_a_firewall_has_as_many_rules_as_asked_and_only_the_last_one_accepts(rules: int) -> None:
    text = firewall(rules).text(row("linux_firewall"))
    senders = re.findall(r"^ip saddr (\S+) counter drop$", text, re.MULTILINE)
    assert len(set(senders)) == rules - 1
    assert all(sender.startswith("198.18.") or sender.startswith("198.19.") for sender in senders)
    assert text.count("accept") == 3  # the counter twice, and the verdict
    assert text.rstrip().endswith("counter name accepted accept\n}\n}")
    assert "policy drop" in text


def test_a_stateful_firewall_accepts_known_connections_first_and_new_ones_by_the_last_rule() -> None:
    text = firewall(3, stateful=True).text(row("linux_stateful_firewall"))
    first, *between, last = text[text.index("policy drop;") :].splitlines()[1:-2]
    assert first == "ct state established counter name accepted accept"
    assert last == "ct state new counter name accepted accept"
    assert len(between) == 2 and all(rule.endswith("counter drop") for rule in between)
    assert "ct state" not in firewall(3).text(row("linux_firewall")), "the other one keeps no connections"


@pytest.mark.parametrize("addresses", [1, 500, 65536])
def test_a_gateway_looks_both_addresses_up_in_one_set_of_as_many_as_asked(addresses: int) -> None:
    text = gateway(addresses).text(row("linux_gateway"))
    (elements,) = re.findall(r"elements = \{ (.*) \}; \}", text)
    found = elements.split(", ")
    assert len(found) == len(set(found)) == addresses
    assert all(each.startswith("198.18.") or each.startswith("198.19.") for each in found)
    for end in ("saddr", "daddr"):
        assert f"ip {end} @refused_addresses counter name refused drop" in text
    assert "policy drop" in text
    assert text.rstrip().endswith("counter name accepted accept\n}\n}")


def test_without_nft_only_cells_that_ask_for_it_lack_something(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(program_output, "_SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    dut = shipped("local").dut
    assert LACK not in map(str, machine.missing(dut))
    by_default = dut.model_copy(update={"containers": (NfKind("linux_firewall"),)})
    assert LACK in map(str, machine.missing(by_default))
    with pytest.raises(Unsupported, match=re.escape(LACK)):
        program.load("")
    shell_program(tmp_path / "nft", "echo syntax error >&2; echo the ruleset >&2; exit 1")
    with pytest.raises(CommandFailed, match=r"nft -f - ended with 1: syntax error$"):
        program.load("")


OWNERS = ("nf-1-1", "nf-2-1")


@pytest.mark.parametrize(("late", "deletions", "left"), [(0, 1, 0), (1, 2, 0), (9, 4, 6)])
def test_late_entries_are_deleted_again(late: int, deletions: int, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They fill the table of the first namespace again after so many deletions."""
    made, threads, here = dict.fromkeys(OWNERS, 0), set[int](), [""]

    def run_inside_each(owners: Sequence[str], work: Callable[[], Any]) -> dict[str, Any]:
        found = {}
        for here[0] in owners:
            found[here[0]] = work()
        return found

    def delete() -> Deletion:
        threads.add(threading.get_ident())
        made[here[0]] += 1
        return Deletion(entries=500, left=3, began_ns=made[here[0]], ended_ns=made[here[0]] + 10)

    monkeypatch.setattr(nftables, "delete_entries", delete)
    monkeypatch.setattr(nftables, "entries_left", lambda: 6 if here[0] == "nf-1-1" and made["nf-1-1"] <= late else 0)
    functions: Any = [SimpleNamespace(name=name, kind=NfKind("linux_nat")) for name in OWNERS]
    node: Any = SimpleNamespace(settings=lambda _: None)
    context: Any = SimpleNamespace(fabric=SimpleNamespace(run_inside_each=run_inside_each))
    found = NftablesRouters(node, context, functions).delete_connections()
    assert made == dict.fromkeys(OWNERS, deletions)
    assert len(threads) == 1, "threads that wait for the kernel's lock use a CPU each"
    assert {owner: (row.entries, row.left, row.began_ns, row.ended_ns) for owner, row in found.items()} == {
        "nf-1-1": (500, left, 1, 11),
        "nf-2-1": (500, 0, 1, 11),
    }


STATISTICS = """\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error
00000010  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000000a 00000001 00000000 00000000
00000010  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000006 00000000 000000ff 00000000
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    values = {"count": 16, "max": 1000, "buckets": 4096, "udp_timeout": 30, "udp_timeout_stream": 120}
    for name, value in values.items():
        (tmp_path / f"nf_conntrack_{name}").write_text(f"{value}\n")
    (tmp_path / "statistics").write_text(STATISTICS)
    monkeypatch.setattr(nftables, "_SETTINGS", tmp_path)
    monkeypatch.setattr(nftables, "_STATISTICS", tmp_path / "statistics")
    return tmp_path


def test_a_table_has_its_size_and_the_counters_of_all_cpus(settings: Path) -> None:
    found = nftables.connection_table()
    assert (found.entries, found.limit, found.buckets, found.timeout_s) == (16, 1000, 4096, 30)
    assert (found.failed, found.dropped, found.evicted) == (16, 1, 255)
    (settings / "statistics").unlink()
    assert nftables.connection_table().failed is None, "a counter that cannot be read is unknown, not 0"
    (settings / "nf_conntrack_count").unlink()
    with pytest.raises(Unsupported, match=r"tracks no connections: there is no .*nf_conntrack_count"):
        nftables.connection_table()


def test_timeouts_of_all_kinds_of_entries_are_set(settings: Path) -> None:
    assert nftables.hold_timeouts(300).timeout_s == 300
    assert (settings / "nf_conntrack_udp_timeout_stream").read_text() == "300"
    assert (settings / "nf_conntrack_tcp_timeout_time_wait").read_text() == "300"
    (settings / "nf_conntrack_udp_timeout").unlink()
    (settings / "nf_conntrack_udp_timeout").mkdir()
    with pytest.raises(CsitError, match="nf_conntrack_udp_timeout cannot be set to 300: Is a directory"):
        nftables.hold_timeouts(300)


def kernel(code: int) -> Callable[..., Any]:
    """The kernel's socket, which answers to the deletion of all entries."""

    def send(request: bytes) -> None:
        assert struct.unpack("=IHH", request[:8]) == (20, 1 << 8 | 2, 5), "all of the namespace, and an answer"

    answer = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -code)
    there = MagicMock(send=send, recv=lambda _: answer)
    there.__enter__.return_value = there
    return lambda *_: there


def test_a_deletion_has_its_entries_or_the_kernels_reason(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nftables, "_EMPTY_S", 0.01)
    monkeypatch.setattr(nftables, "go_first", lambda: None)
    monkeypatch.setattr(socket, "socket", kernel(0))
    found = nftables.delete_entries()
    assert (found.entries, found.left) == (16, 16) and found.began_ns <= found.ended_ns
    assert nftables.entries_left() == 16, "what is left is waited for and then reported"
    (settings / "nf_conntrack_count").write_text("0\n")
    assert nftables.entries_left() == 0
    monkeypatch.setattr(socket, "socket", kernel(errno.EPERM))
    with pytest.raises(CsitError, match="the kernel does not delete connections: Operation not permitted"):
        nftables.delete_entries()
