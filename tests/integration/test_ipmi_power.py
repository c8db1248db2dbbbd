"""ipmitool against a BMC that is not ours, `ipmi_sim` of OpenIPMI, over RMCP+ on loopback.

It has no DCMI, so this proves the login and what is said of such a BMC; a unit test has the text of a power reading.
"""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resources.libraries.python.model.testbed.access import Ipmi
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node.energy import read_meter

MISSING = [name for name in ("ipmi_sim", "ipmitool") if shutil.which(name) is None]
pytestmark = [pytest.mark.parallel, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")]

USER, PASSWORD = "csit", "only-here"
LAN = """\
name "csit"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
MANAGEMENT_CONTROLLER = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The UDP port of a simulated BMC that takes logins."""
    folder: Path = tmp_path_factory.mktemp("bmc")
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    (folder / "lan.conf").write_text(LAN.format(port=port, user=USER, password=PASSWORD), encoding="ascii")
    (folder / "emu").write_text(MANAGEMENT_CONTROLLER, encoding="ascii")
    command = ["ipmi_sim", "-c", str(folder / "lan.conf"), "-f", str(folder / "emu"), "-s", str(folder), "-n"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            end_s = time.monotonic() + 30
            # A port that is not bound refuses the datagram of a connected socket with the next one.
            with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
                probe.connect(("127.0.0.1", port))
                while not _is_bound(probe):
                    assert server.poll() is None and time.monotonic() < end_s, "ipmi_sim does not listen"
                    time.sleep(0.1)
            yield port
        finally:
            server.terminate()


def _is_bound(probe: socket.socket) -> bool:
    try:
        for _ in range(2):
            probe.send(b"\x06\x00\xff\x06")  # an incomplete RMCP message, which is ignored
            time.sleep(0.02)
    except ConnectionRefusedError:
        return False
    return True


def why(port: int) -> str:
    """Read the meter; return why there is none."""
    # Without a cipher suite ipmitool asks for those of the BMC, which does not answer that for 10 s.
    told = {"host": "127.0.0.1", "port": port, "user": USER, "password": "env:CSIT_TEST_BMC", "cipher_suite": 3}
    meter = Ipmi.model_validate({"meter": "ipmi", **told})
    with closing(LocalConnection()) as here:
        return read_meter("DUT1", meter, 0.1, here, python=sys.executable, root=False).unmetered["DUT1"]


def test_the_login_works_and_a_bmc_without_dcmi_is_reported(bmc: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSIT_TEST_BMC", PASSWORD)
    assert "gave no power: DCMI request failed because: Invalid command (c1)" in why(bmc)


def test_a_wrong_password_is_reported(bmc: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSIT_TEST_BMC", "another-one")
    found = why(bmc)
    assert "Unable to establish IPMI v2 / RMCP+ session" in found and "another-one" not in found
