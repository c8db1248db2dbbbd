"""What Open vSwitch 3.1 answers, as it was printed."""

import pytest

from resources.libraries.python.drivers.vswitches.ovs import driver
from resources.libraries.python.errors import CsitError

RXQ_SHOW = """Displaying last 60 seconds pmd usage %
pmd thread numa_id 0 core_id 1:
  isolated : true
  port: csv1p1            queue-id:  0 (enabled)   pmd usage:  3 %
  port: csv1x1i1          queue-id:  0 (enabled)   pmd usage:  2 %
  overhead:  0 %
pmd thread numa_id 0 core_id 12:
  isolated : true
  port: csv1p2            queue-id:  0 (enabled)   pmd usage: NOT AVAIL
  port: csv1x1i1          queue-id:  1 (enabled)   pmd usage:  2 %
  overhead: NOT AVAIL
"""


def test_ports_are_read_with_the_cpu_that_polls_each_queue() -> None:
    assert driver.polling_cpus(RXQ_SHOW) == {"csv1p1": {0: 1}, "csv1x1i1": {0: 1, 1: 12}, "csv1p2": {0: 12}}


def test_no_pmd_thread_polls_nothing() -> None:
    assert driver.polling_cpus("Displaying last 60 seconds pmd usage %\n") == {}


@pytest.mark.parametrize(
    ("said", "number", "sleeps"),
    [
        ("ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.11\n", "3.1.0", True),
        ("ovs-vswitchd (Open vSwitch) 2.17.9\n", "2.17.9", False),
        ("ovs-vswitchd (Open vSwitch) 3.0.3\n", "3.0.3", False),
        ("nothing of the kind", "unknown version", False),
    ],
)
def test_versions(said: str, number: str, sleeps: bool) -> None:
    assert driver.version(said) == number
    assert driver.pmd_sleeps(number) is sleeps


def test_interface_types() -> None:
    assert driver.type_names('[afxdp, "afxdp-nonpmd", internal, system]\n') == {
        "afxdp", "afxdp-nonpmd", "internal", "system",
    }  # fmt: skip
    assert driver.type_names("[]") == frozenset()


def test_only_interfaces_with_an_error_are_returned() -> None:
    printed = (
        '{"data":[["csv1p1","could not open network device csv1p1 (No such device)"],'
        '["csv1p2",""],["csit",["set",[]]]],"headings":["name","error"]}'
    )
    assert driver.interface_errors(printed) == {"csv1p1": "could not open network device csv1p1 (No such device)"}


@pytest.mark.parametrize("printed", ["", "[]", "{}", '{"rows": []}'])
def test_a_file_that_is_no_table_is_reported(printed: str) -> None:
    with pytest.raises(CsitError, match="did not print a table"):
        driver.interface_errors(printed)
