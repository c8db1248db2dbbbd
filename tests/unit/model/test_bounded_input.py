"""Files that would take gigabytes, minutes or a traceback to read are refused in one sentence with their line."""

from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES, MAX_ITEMS, dotted, quoted
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.service.load import load_specifications
from tests.unit.model.yaml_bombs import BOMB, MERGE_BOMB
from tests.unit.planning.labs import refused

SIM = (Path(__file__).parents[3] / "topologies" / "sim.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOMB, f"items, aliases included; at most {MAX_ITEMS:,} are possible"),
        (MERGE_BOMB, "items, aliases included"),
        ("a: &x [*x]", ":1: not valid YAML: contains itself by an alias"),
        ("a: &x {b: {<<: *x}}", "contains itself by an alias"),
        ("[" * 100_000, ":1: not valid YAML: nested deeper than 40 levels"),
        ("a:\n  b: 2001-99-99", ":2: not valid YAML: '2001-99-99' is not a valid timestamp"),
        ('a: !!int ""', ":1: not valid YAML: '' is not a valid int"),
        ("? [a]\n: b", ":1: a key has to be a word or a number, not a list or a mapping"),
        ("a: !python/object:os.system x", "could not determine a constructor"),
        (f"a: {'9' * 5_000}", "a number of 5,000 characters; at most 100 are possible"),
        (f"? {'k' * 100_000}\n: 1", "kkk… (100,0"),
        ("a: b\nc: \udcff", ":2: cannot be read: byte 0xff is not UTF-8"),
        ("a: \x07", "not valid YAML"),
        ("#" * (LARGEST_INPUT_BYTES + 1), f": larger than {LARGEST_INPUT_BYTES:,} bytes"),
        (SIM.replace("world: sim", f"world: {'x' * 100_000}"), "unknown word 'xxx"),
        (SIM.replace("cpus: 0-27,", f"cpus: '{','.join(['0-4000'] * 5_000)}',"), "lists more than 65,536 numbers"),
        (SIM.replace("10000000000", ".nan"), "rate_bps"),
        (SIM.replace("10000000000", "2001-01-01"), "rate_bps"),
    ],
)
def test_what_cannot_be_read_within_bounds_is_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)


@pytest.mark.parametrize(("name", "why"), [("/dev/zero", "not a regular file"), ("none", "No such file"), ("a\0b", "")])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot be read: .*{why}"):
        load_topology(tmp_path / name)


def test_nested_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    path.write_text("[" * 50_000 + "]" * 50_000, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"deployment\.json: not valid JSON|nested deeper"):
        load_specifications(path, path)


def test_control_characters_are_made_visible() -> None:
    assert quoted("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
    assert quoted("x" * 300) == f"{'x' * 200}… (300 characters)"
    assert quoted("\x8d" * 90) == r"\x8d" * 50 + "… (90 characters)", "as it is shown, not as it was"
    assert dotted(("a", 0, "b" * 300)) == f"a.0.{'b' * 196}… (304 characters)"
