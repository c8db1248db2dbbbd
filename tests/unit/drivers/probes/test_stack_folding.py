"""Output of perf folded to stacks by owner: nothing is counted twice, and nothing of other programs is the cell's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.probes import call_stacks as perf
from resources.libraries.python.drivers.probes.call_stacks import fold, kept, owners_of, read_samples, why_unsampled
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.bounds import DEEPEST_STACK, LONGEST_FUNCTION
from resources.libraries.python.model.measurements.stacks import NodeStacks
from tests.builders import shell_program

OWNERS = owners_of({"nf-1-1": (41, 42), "vswitch": (7,)})
PRINTED = """\
napi/csn1x1i1-8 41 
\tffffffff81a02f10 nft_do_chain
\tffffffff81a02f00 nf_hook_slow.isra.0
\tffffffff81a02e00 napi_threaded_poll+0x17

napi/csn1x1i1-8 41 
\tffffffff81a02f10 nft_do_chain
\tffffffff81a02f10 nft_do_chain

swapper     0 
\tffffffff8100 default_idle

swapper     0 
\tffffffff8101 veth_poll
\tffffffff8102 handle_softirqs
\tffffffff8100 default_idle

trafgen 99 
\t        1aaea0 send

PERF_RECORD_LOST lost 12
vhost-1234     7 
\t        5555 [unknown]
\t        6666 ovs;lookup
\t        7777 [unknown]
"""


def test_frames_are_named_by_owner_and_without_what_builds_differ_in() -> None:
    found = fold(PRINTED.splitlines(), OWNERS)
    assert dict(found.counts) == {
        "nf-1-1;napi_threaded_poll;nf_hook_slow;nft_do_chain": 1,
        "nf-1-1;nft_do_chain": 1,
        "softirq;handle_softirqs;veth_poll": 1,
        "vswitch;vhost;ovs:lookup;[unknown]": 1,
    }
    assert (found.samples, found.idle, found.elsewhere, found.lost) == (6, 1, 1, 12)


def test_a_deep_stack_keeps_both_ends_and_long_names_are_cut() -> None:
    frames = [f"\t  {at:x} f{at}{'x' * 300}" for at in range(500)]
    (stack,) = fold(["napi/a 41", *frames], OWNERS).counts
    names = stack.split(";")
    assert len(names) == DEEPEST_STACK + 1 and all(len(name) <= LONGEST_FUNCTION for name in names)
    assert names[1].startswith("f499x") and names[-1].startswith("f0x") and "[...]" in names


WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
THREAD = st.builds(lambda name, tid: f"{name} {tid}", WORDS, st.sampled_from([0, 7, 41, 99]))
FRAME = st.builds(lambda name: f"\t ffff12 {name}", WORDS)


@given(st.lists(st.one_of(WORDS, THREAD, FRAME, st.just("")), max_size=60))
def test_whatever_is_printed_each_sample_is_counted_once_and_fits_a_record(lines: list[str]) -> None:
    found = fold(lines, OWNERS)
    assert found.samples == found.idle + found.elsewhere + found.counts.total()
    stacks, cut = kept(found.counts, 3)
    assert sum(stacks.values()) == found.counts.total() and cut <= found.counts.total()
    NodeStacks(
        node="n", event="sim", hz=1, cpus=(), sampled_s=0, samples=found.samples, idle=0, elsewhere=0, stacks=stacks
    )


def test_stacks_beyond_the_kept_ones_stay_with_their_owner() -> None:
    stacks, cut = kept({"a;x": 5, "a;y": 3, "b;z": 2, "a;w": 1}, 2)
    assert stacks == {"a;x": 5, "a;y": 3, "b;[other stacks]": 2, "a;[other stacks]": 1} and cut == 3


def test_a_machine_that_cannot_sample_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert str(why_unsampled("perf-of-no-machine")).startswith("perf-of-no-machine is not installed, so call stacks")
    broken = shell_program(tmp_path / "perf", "exit 2")
    monkeypatch.setattr(perf, "path_of", lambda _: str(broken))
    assert "does not run with this kernel, so call stacks cannot be sampled; apt-get" in str(why_unsampled())
    shell_program(broken, "exit 0")
    monkeypatch.setattr(perf, "why_not_on", lambda *_: "Permission denied")
    assert "cannot be sampled: Permission denied (kernel.perf_event_paranoid is " in str(why_unsampled())
    monkeypatch.setattr(perf, "why_not_on", lambda *_: "")
    assert why_unsampled() is None


def test_a_reader_of_samples_may_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = "printf 'napi/x 41\\n\\t ff f\\n'\necho no such data >&2\nexit "
    program = shell_program(tmp_path / "perf", f"{said}3")
    monkeypatch.setattr(perf, "path_of", lambda _: str(program))
    with pytest.raises(CommandFailed, match="no such data"):
        read_samples(tmp_path / "perf.data", OWNERS)
    shell_program(program, f"{said}0")
    assert dict(read_samples(tmp_path / "perf.data", OWNERS).counts) == {"nf-1-1;f": 1}
