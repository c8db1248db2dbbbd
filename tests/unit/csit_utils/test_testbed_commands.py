"""What commands about testbeds read and print."""

import pytest

from csit_utils.commands.testbeds.doctor import print_findings
from csit_utils.commands.testbeds.reserve import seconds
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.findings.check_finding import ok, problem, warning

FINDINGS = [
    ok("nodes.TG", "system", "Debian"),
    problem("nodes.DUT1.access", "reach", "nothing listens on port 22", "start it"),
    warning("nodes.TG.interfaces.port1", "link", "is down", "ip link set eth1 up"),
]


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("8h", 28800),
        ("1h30m", 5400),
        ("0.5h", 1800),
        ("1d", 86400),
        (" 2H ", 7200),
    ],
)
def test_durations_as_people_write_them(text: str, expected_s: float) -> None:
    assert seconds(text, "--lease") == expected_s


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8 hours", "no duration"),
        ("h", "no duration"),
        ("", "no duration"),
        ("-1", "no duration"),
        ("5s", "must be 10 s"),
        ("31d", "30 days"),
    ],
)
def test_what_is_no_duration_is_refused_by_the_option_s_name(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--lease: .*{said}"):
        seconds(text, "--lease", least_s=10.0)


def test_in_a_pipe_a_finding_is_a_line_and_those_of_a_node_are_together(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings(FINDINGS)
    assert capsys.readouterr().out.splitlines() == [
        "ok      nodes.TG: system: Debian",
        "warning nodes.TG.interfaces.port1: link: is down; ip link set eth1 up",
        "problem nodes.DUT1.access: reach: nothing listens on port 22; start it",
    ]
