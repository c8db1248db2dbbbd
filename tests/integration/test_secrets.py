"""Secrets of a run over real SSH servers: in no file, no process list and not on the console."""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.integration.lab import Lab
from tests.integration.lab_runs import needs_lab, options, state, wait_for_state
from tests.integration.robot_runs import DENSITY, PROJECT, argv, environment, results

pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab]
SUITE = r"""\
*** Settings ***
Resource    {resource}

*** Test Cases ***
The Token
    [Documentation]    A user who is not careful.
    [Tags]    token-${{TOKEN}}
    Log    ${{TOKEN}} and %{{CSIT_TG_WORD}}
    Open Connections To Nodes
    Run On Node    TG    printf '%s' '${{TOKEN}}' >&2; printf '\\033[2J'
    ${{PASSWORD}} =    Set Variable    ${{TOKEN}}-2
    Fail    the token is ${{TOKEN}}, the password %{{CSIT_TG_WORD}}
    [Teardown]    Close Connections To Nodes
"""


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(used=True) as made:
        yield made


class ProcessList:
    """Command lines of all processes while the test runs, as any user sees them."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._done = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> "ProcessList":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    self.seen.add(path.read_bytes())


def test_no_secret_leaves_a_run(lab: Lab, tmp_path: Path) -> None:
    token, passphrase = f"tok-{secrets.token_hex(8)}", f"open {secrets.token_hex(4)}"
    password = lab.passwords["root"]
    locked = tmp_path / "locked"
    locked.write_bytes(lab.key_file.read_bytes())
    locked.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", passphrase, "-f", str(locked)], check=True)
    locked.with_suffix(".pub").write_bytes(lab.key_file.with_suffix(".pub").read_bytes())
    nodes = {
        "TG": {"access": {"key_file": None, "password": "env:CSIT_TG_WORD"}, "cpus": [{"cpus": "0", "cores": "0"}]},
        "DUT1": {"access": {"key_file": str(locked), "password": "env:CSIT_DUT_WORD"}},
    }
    suite = tmp_path / "careless.robot"
    resource = PROJECT / "resources" / "libraries" / "robot" / "nodes.resource"
    suite.write_text(SUITE.format(resource=resource), encoding="utf-8")
    output, before = tmp_path / "out", state(lab)
    words = options(
        lab.topology(tmp_path, nodes=nodes), "-v", "CELLS:1x1", "-v", f"TOKEN:{token}", "--loglevel", "TRACE",
        "--log", "log.html", "--report", "report.html", "--xunit", "junit.xml",
        "--suite", "csc-mrr", "--suite", "careless",
    )  # fmt: skip
    with ProcessList() as processes:
        done = subprocess.run(
            argv(output, *words, sources=[DENSITY, suite]),
            cwd=PROJECT, env={**environment(), "CSIT_TG_WORD": password, "CSIT_DUT_WORD": passphrase},
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the token is ***, the password ***" in done.stdout
    wait_for_state(lab, before)
    record = results(output)[0]
    assert record.passed, record.message
    texts = {path.name: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    assert {"output.xml", "log.html", "report.html", "junit.xml", "journal.jsonl"} <= set(texts)
    texts["console"] = (done.stdout + done.stderr).encode()
    texts["the record"] = record.model_dump_json().encode()
    for name, text in texts.items():
        assert not [each for each in (token, password, passphrase) if each.encode() in text], name
    assert b"\x1b" not in texts["console"] and b"\x1b" not in texts["output.xml"]
    for line in processes.seen:
        assert password.encode() not in line and passphrase.encode() not in line
        # Robot's own command line has what the user wrote there, and a command on a node what its keyword was given.
        assert token.encode() not in line or b"robot" in line or b"printf" in line, line
    for node in lab.nodes.values():
        found = node.run("sh", "-c", f"grep -rlsF -e '{password}' -e '{passphrase}' /run /tmp /var/tmp || true")
        assert not found
