"""What Suricata is told, and what its control socket answers."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.functions.monitor.suricata import argv, files, taken
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import ProcessedPackets

PLACE = Path("/run/suricata/nf-1-1")


@given(rules=st.integers(1, 300))
def test_each_rule_has_a_number_and_a_pattern_of_its_own(rules: int) -> None:
    lines = files("eth0", PLACE, rules)["suricata.rules"].splitlines()
    assert len(lines) == rules
    for what in (r"sid:(\d+);", r'content:"([0-9a-f]{8})"'):
        assert len({re.search(what, line)[1] for line in lines}) == rules  # type: ignore[index]


def test_what_it_reads_is_in_its_folder_and_leaves_the_interface_as_it_is() -> None:
    told = argv("csn1x1i1", PLACE)
    texts = files("csn1x1i1", PLACE, 10)
    assert [word for word in told if Path(word).name in texts] == [str(PLACE / "suricata.yaml")]
    found = yaml.safe_load(texts["suricata.yaml"])
    assert found["rule-files"] == ["suricata.rules"]
    assert found["af-packet"][0]["interface"] == "csn1x1i1"
    assert found["capture"]["disable-offloading"] is False
    assert Path(found["unix-command"]["filename"]).parent == PLACE


@contextmanager
def answering(place: Path, *pieces: bytes) -> Iterator[list[bytes]]:
    """A socket that greets, and answers whatever comes next in so many pieces."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(place))
        door.listen()

        def serve() -> None:
            link, _ = door.accept()
            with link:
                heard.append(link.recv(1000))
                link.sendall(b'{"return":"OK"}\n')
                heard.append(link.recv(1000))
                for piece in pieces:
                    link.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        yield heard
        thread.join()


def test_packets_that_it_dropped_are_not_among_those_it_got(tmp_path: Path) -> None:
    with answering(tmp_path / "control", b'{"message":{"pkts":12,', b'"drop":5},"return":"OK"}') as heard:
        assert taken(tmp_path / "control", "eth0") == ProcessedPackets(7, 5)
    assert json.loads(heard[0]) == {"version": "0.2"}
    assert json.loads(heard[1]) == {"command": "iface-stat", "arguments": {"iface": "eth0"}}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"return":"NOK","message":"iface does not exist"}', "iface does not exist"),
        (b'{"return":"OK","message":{"pkts":"many"}}', "cannot be understood"),
        (b'{"return":"OK"}', "cannot be understood"),
        (b'{"return"', "suricata: .* closed"),
    ],
)
def test_another_answer_is_one_sentence(tmp_path: Path, answer: bytes, words: str) -> None:
    with answering(tmp_path / "control", answer), pytest.raises(CsitError, match=words):
        taken(tmp_path / "control", "eth0")


def test_an_unreachable_server_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match=r"suricata does not answer at .*/control: No such file"):
        taken(tmp_path / "control", "eth0")
