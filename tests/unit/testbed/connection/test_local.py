"""Programs of the connection to this machine: what is left of one that is killed, and how much one may say."""

import pytest

from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.redaction import keep_secret
from resources.libraries.python.testbed.connection import machine
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.program import TAIL_BYTES


def test_output_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LARGEST_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(CsitError, match=r"^DUT1: cat was ended: it wrote more than 1 MB$"):
        LocalConnection("DUT1").run(["cat", "/dev/zero"], within_s=600)


def test_the_deadline_holds_for_a_program_that_goes_on_speaking() -> None:
    with pytest.raises(NotReady, match=r"end of sh on DUT1 not ready after 1\.0 s"):
        LocalConnection("DUT1").run(["sh", "-c", "while :; do echo x; sleep 0.01; done"], within_s=1.0)


def test_the_end_of_what_a_program_says_is_kept_and_escaped_without_secrets() -> None:
    keep_secret("open sesame")
    line = "echo out; head -c 5000000 /dev/zero >&2; echo open sesame >&2; exit 3"
    with pytest.raises(CommandFailed) as failed:
        LocalConnection("DUT1").run(["sh", "-c", line])
    assert failed.value.stderr.endswith("\\x00***\n")
    assert len(failed.value.stderr) < 4 * TAIL_BYTES + 4
