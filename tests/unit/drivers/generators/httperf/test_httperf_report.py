"""Reports of httperf, and what becomes of them in results."""

import pytest

from resources.libraries.python.drivers.generators.httperf import driver
from resources.libraries.python.drivers.generators.httperf.driver import (
    ClientReport,
    client_command,
    missing,
    read_report,
    server_configuration,
    trial_result,
)
from resources.libraries.python.model.measurements.trial import Direction, Protocol, Trial
from resources.libraries.python.model.request.frames import frame
from tests.builders import plan_of

PLAN = plan_of("local", "CSC", 2, 1)
FORWARD = [flow for flow in PLAN.flows if flow.direction is Direction.FORWARD]
TRIAL = Trial(load_pps=2000.0, duration_s=1.0, frame=frame("64B"), protocol=Protocol.TCP, purpose="connections")


def text(replies: int, seconds: float, **errors: int) -> str:
    """A report as it is printed, in the parts that matter."""
    names = (
        "client-timo",
        "socket-timo",
        "connrefused",
        "connreset",
        "fd-unavail",
        "addrunavail",
        "ftab-full",
        "other",
    )
    counts = {name: errors.get(name.replace("-", "_"), 0) for name in names}
    rows = [f"{name} {count}" for name, count in counts.items()]
    return (
        "httperf: warning: open file limit > FD_SETSIZE; limiting max. # of open files to FD_SETSIZE\n"
        f"Total: connections {replies} requests {replies} replies {replies} test-duration {seconds:.3f} s\n\n"
        f"Connection rate: 6183.8 conn/s (0.2 ms/conn, <=1020 concurrent connections)\n\n"
        f"Errors: total {sum(counts.values())} {' '.join(rows[:4])}\nErrors: {' '.join(rows[4:])}\n"
    )


def test_a_report_separates_connections_that_failed_from_those_that_the_client_could_not_open() -> None:
    found = read_report(text(900, 1.5, client_timo=3, connreset=2, fd_unavail=90, addrunavail=5))
    assert found == ClientReport(established=900, refused=95, failed=5, duration_s=1.5)


@pytest.mark.parametrize("said", ["", "httperf: no such host", text(1, 1.0).split("Errors")[0]])
def test_what_is_no_report_is_refused_with_its_words(said: str) -> None:
    with pytest.raises(ValueError, match="no report: "):
        read_report(said)


def result(*reports: ClientReport, each: int = 1000) -> tuple[list[tuple[int, int]], bool, str | None]:
    rows = [(flow, each, report) for flow, report in zip(FORWARD, reports, strict=True)]
    found = trial_result(TRIAL, rows, "2026-01-01T00:00:00+00:00", 1.1)
    return [(flow.sent, flow.received) for flow in found.flows], found.generator_limited, found.note


def test_descriptors_that_run_out_limit_the_client_unless_connections_of_the_service_hold_them() -> None:
    whole = ClientReport(1000, 0, 0, 1.0)
    assert result(whole, whole) == ([(1000, 1000)] * 2, False, None)
    assert result(whole, ClientReport(990, 0, 10, 2.0)) == ([(1000, 1000), (1000, 990)], False, None)
    counts, limited, note = result(whole, ClientReport(700, 300, 0, 1.0))
    assert counts == [(1000, 1000), (700, 700)] and limited
    assert note == "300 of 2,000 connections were not opened: the client has no more descriptors or ports"
    held = result(whole, ClientReport(600, 300, 100, 2.0))
    assert held == ([(1000, 1000), (1000, 600)], False, None), "what the service does not answer holds descriptors"
    assert result(whole, ClientReport(1000, 0, 0, 1.8))[1:] == (True, "the client took 0.8 s longer than its schedule")


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "path_of", lambda name: "/usr/bin/httperf" if name == "httperf" else None)
    assert list(map(str, missing())) == ["nginx missing for TCP connections; install it: apt-get install nginx"]


def test_a_client_has_the_rate_and_the_server_every_address() -> None:
    argv = client_command(FORWARD[1], 300, 1000.0)
    assert argv[argv.index("--server") + 1] == FORWARD[1].destination_ip
    assert (argv[argv.index("--num-conns") + 1], argv[argv.index("--rate") + 1]) == ("300", "1000")
    configuration = server_configuration(FORWARD)
    assert all(f"listen {flow.destination_ip}:80 " in configuration for flow in FORWARD)
    assert "keepalive_timeout 0" in configuration
