"""Chains of a study: the file with its mistakes, the chains, the policies that drop others, the cells that they are."""

from itertools import permutations
from math import perm
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.bounds import MAX_BRACKETS
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, Fault, Mode, VnfSpec, load_chains
from resources.libraries.python.studies.chains.planning import generate, parse, policy, why_not
from resources.libraries.python.studies.chains.run import cell_of, owners, planted
from tests.builders import shipped
from tests.unit.examples import share
from tests.unit.studies.chains.chain_runs import FAULT, VNFS, chain, four_vnfs, spec_of

SEVEN = ("firewall", "netsniff", "snort", "suricata", "suricata-ips", "tcpdump", "nat")
"""The VNFs of Probius, and the facts of the policies that its authors published with their code: one IDS or IPS, one
traffic analyzer, the firewall before what looks into packets."""
PUBLISHED = (
    "snort | suricata | suricata-ips", "netsniff | tcpdump", "firewall > snort", "firewall > suricata",
    "firewall > suricata-ips",
)  # fmt: skip


def study(names: tuple[str, ...], *policies: str, lengths: tuple[int, ...] = (), **more: object) -> ChainStudySpec:
    return spec_of(names, policies, lengths).model_copy(update=more)


@pytest.mark.parametrize(("vnfs", "longer"), [(2, 2), (3, 12), (4, 60), (5, 320), (7, 13_692)])
def test_without_policies_there_are_all_orders_and_not_rotations_only(vnfs: int, longer: int) -> None:
    found = generate(study(tuple(f"v{number}" for number in range(vnfs))))
    assert sum(number for length, number in found.orders.items() if length > 1) == longer
    assert found.orders == {length: perm(vnfs, length) for length in range(1, vnfs + 1)}


def test_the_published_policies_give_the_published_vnfs_178_chains() -> None:
    found = generate(study(SEVEN, *PUBLISHED))
    assert {length: number for length, number in found.orders.items() if number} == {1: 7, 2: 31, 3: 75, 4: 72}
    assert len(list(found)) == found.count == 185


def test_counting_sixteen_vnfs_makes_no_chain_and_those_alone_are_always_there() -> None:
    found = generate(study(tuple(f"v{number}" for number in range(16)), "v0 > v1", lengths=(4, 5)))
    assert found.orders[4] == perm(16, 4) - perm(14, 2) * 6  # of 12 places for v0 and v1 half are forbidden
    assert [each.name for each, _ in zip(found, range(17), strict=False)][-2:] == ["v15", "v0 > v1 > v2 > v3"]


NAMES = ("a", "b", "c", "d")
POLICIES = st.lists(
    st.builds("{0[0]} {1} {0[1]}".format, st.permutations(NAMES).map(lambda row: row[:2]), st.sampled_from(">&|"))
    | st.builds("{0[0]} & ({0[1]} > {0[2]})".format, st.permutations(NAMES))
    | st.builds("({0[0]} | {0[1]}) > {0[2]}".format, st.permutations(NAMES)),
    max_size=4,
)


@settings(max_examples=share(60))
@given(POLICIES, st.sets(st.integers(1, 4)))
@example(["a > b", "b > a"], {3})
def test_counts_and_blame_are_those_of_trying_every_order(policies: list[str], lengths: set[int]) -> None:
    spec = study(NAMES, *policies, lengths=tuple(lengths))
    try:
        found = generate(spec)
    except ConfigError as error:
        assert "they leave no chain" in str(error)
        return
    every = [order for length in found.lengths for order in permutations(NAMES, length)]
    blamed = {
        order: [judge.text for judge in found.policies if len(order) > 1 and not judge.obeys(order)] for order in every
    }
    allowed = [order for order in every if not blamed[order]]
    assert sorted(found.each_order()) == sorted(allowed)
    assert sum(found.orders.values()) == found.count == len(allowed)
    for index, row in enumerate(found.dropped):
        text, before = found.policies[index].text, {policy.text for policy in found.policies[:index]}
        mine = {order for order in every if text in blamed[order] and not before.intersection(blamed[order])}
        assert row.count == len(mine)
        assert set(row.examples) <= mine and bool(row.examples) == bool(mine)
    assert {order: list(why_not(found, order)) for order in every} == blamed


def test_resources_multiply_chains_and_each_chain_is_another_one() -> None:
    sizes = {"sizes": (NfSize.HALF, NfSize.ONE)}
    vnfs = (
        VnfSpec(name="a", kind=NfKind("linux_router"), memory_mib=(64, 128, 256), **sizes),
        VnfSpec(name="b", kind=NfKind("linux_nat"), **sizes),
    )
    found = generate(study(("a",), vnfs=vnfs))
    assert found.count == 6 + 2 + 2 * 12
    assert len(set(found)) == found.count
    assert found.orders == {1: 2, 2: 2}


def faulty(*order: str) -> ChainStudySpec:
    """Of chains of one or two VNFs, with `a` before `b`."""
    fault = Fault(chain=order, vnf="a", limits=Limits(cpu=0.1))
    return study(("a", "b", "c"), "a > b", lengths=(2,), faults=(fault,))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (study(("a", "b"), "a > b", "b > a"), "policies: .* 2 VNFs; .* 'a > b' 1, 'b > a' 1"),
        (study(("a", "b"), lengths=(2, 3)), r"lengths\.1: a chain of 3 VNFs, and there are 2"),
        (study(tuple(f"v{number}" for number in range(30))), "lengths: .* 30 of 30 VNFs"),
        (faulty("b", "a"), r"faults\.0: chain b > a .* 'a > b'"),
        (faulty("a", "b", "c"), r"faults\.0: chain a > b > c .* 1 or 2 VNFs"),
        (faulty("a", "a"), r"faults\.0: chain a > a "),
    ],
)
def test_what_leaves_no_chain_or_cannot_be_measured_is_refused(spec: ChainStudySpec, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^study: {message}"):
        generate(spec)


LETTERS = ("A", "B", "C", "D")


def test_following_binds_most_and_one_of_binds_least() -> None:
    assert parse("A > B & C > D", LETTERS, "") == parse("(A > B) & (C > D)", LETTERS, "")
    assert parse("A & B | C & D", LETTERS, "") == parse("(A & B) | (C & D)", LETTERS, "")
    assert parse("A | B > C", LETTERS, "") == parse("A | (B > C)", LETTERS, "")


@pytest.mark.parametrize(
    ("text", "word", "column"),
    [
        ("A > > B", "'>'", 5),
        ("A > (B", "bracket", 5),
        ("A B", "'B'", 3),
        ("A > B)", "bracket", 6),
        ("A >", "end", 4),
        ("", "end", 1),
        ("A $ B", "'$'", 3),
        ("A > Bb", "did you mean 'B'", 5),
        ("A & nothing", "A, B, C, D", 5),
        ("A > (B | A)", "'>'", 5),
        ("A | A", "'|'", 5),
        ("A\n> > B", "'>'", 5),
    ],
)
def test_a_mistake_is_named_and_marked_with_a_caret(text: str, word: str, column: int) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, LETTERS, "study: policies.0")
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith("study: policies.0: ") and word in first and f"(column {column})" in first
    assert shown == "  " + text.replace("\n", " ")
    assert caret.index("^") == column + 1


def test_brackets_have_a_bottom() -> None:
    deep = "(" * MAX_BRACKETS + "A > B" + ")" * MAX_BRACKETS
    assert parse(deep, LETTERS, "") == parse("A > B", LETTERS, "")
    for deeper in (f"({deep})", "(" * 100_000):
        with pytest.raises(ConfigError, match=f"more than {MAX_BRACKETS} nested brackets"):
            parse(deeper, LETTERS, "")


EXPRESSIONS = st.recursive(
    st.sampled_from(LETTERS), lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(">&|"), inner)
)


def obeys_by_definition(text: str, order: tuple[str, ...]) -> bool:
    """The two sentences of the package's docstring, evaluated on the text itself."""
    stack: list[list[str]] = []
    holds = True
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == ")":
            right, operator, left = stack.pop(), stack.pop()[0], stack.pop()
            there = [{name for name in side if name in order} for side in (left, right)]
            if operator == "&":
                holds &= bool(there[0]) == bool(there[1])
            elif operator == "|":
                holds &= not (there[0] and there[1])
            else:
                holds &= all(order.index(a) < order.index(b) for a in there[0] for b in there[1])
            stack.append(left + right)
        elif word != "(":
            stack.append([word])
    return holds


@given(EXPRESSIONS)
def test_any_expression_means_what_its_definition_says(text: str) -> None:
    try:
        judge = policy(text, LETTERS, "")
    except ConfigError as error:
        assert "on both sides of" in str(error)
        return
    for length in range(1, len(LETTERS) + 1):
        for order in permutations(LETTERS, length):
            assert judge.obeys(order) == obeys_by_definition(text, order), (text, order)


@given(st.text(alphabet="AB()>&| x$\n", max_size=30))
def test_any_text_is_a_policy_or_one_marked_error(text: str) -> None:
    try:
        parse(text, LETTERS, "policies.0")
    except ConfigError as error:
        assert str(error).count("\n") == 2
        assert str(error).endswith("^")


SPECS = Path(__file__).parents[3] / "characterization" / "specs"
CHAINS = """\
name: three
resources: {sizes: [1c, 0.5c]}
vnfs:
  - {name: firewall, kind: linux_firewall, sizes: [1c]}
  - {name: nat, kind: linux_nat}
  - {name: monitor, kind: tcpdump, mode: passive, memory_mib: [64, 128]}
policies: [firewall > nat]
workloads: {protocols: [UDP, TCP], volumes_mbps: [20, 40], sessions: [1, 10], frames: [512B]}
faults: [{chain: [firewall, nat], vnf: nat, limits: {cpu: 0.2}}]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_resources_hold_for_vnfs_without_their_own_and_workloads_are_all_combinations(tmp_path: Path) -> None:
    spec = load_chains(written(tmp_path, CHAINS))
    assert [vnf.sizes for vnf in spec.vnfs] == [(NfSize.ONE,), (NfSize.ONE, NfSize.HALF), (NfSize.ONE, NfSize.HALF)]
    assert (spec.vnf("monitor").memory_mib, spec.vnf("monitor").mode) == ((64, 128), Mode.PASSIVE)
    assert len(set(spec.workloads)) == 2 * 2 * 2
    assert {row.volume_bps for row in spec.workloads} == {2e7, 4e7}
    assert spec.workloads[0].frame.largest_bytes == 512


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("kind: linux_nat", "kind: linux_nta", "5: vnfs.1.kind: unknown word 'linux_nta'; did you mean 'linux_nat'?"),
        ("[512B]", "[9B]", "8: workloads.frames.0: no frame size '9B'"),
        ("{protocols", "{generator: typo, protocols", "8: workloads.generator: "),
        ("[20, 40]", "[]", "8: workloads.volumes_mbps: "),
        ("sizes: [1c]}", "faults: []}", "4: vnfs.0.faults: unknown key (and 1 more)"),
        ("kind: linux_nat", "kind: process", "5: vnfs.1: nat: an NF of kind process needs a program"),
        ("name: nat", "name: firewall", "5: vnfs.1.name: firewall is defined twice"),
        ("vnf: nat", "vnf: gnat", "9: faults.0: no VNF gnat"),
        ("[firewall, nat], vnf", "[firewall], vnf", "9: faults.0.vnf: nat "),
        ("name: monitor", "name: vswitch", "1: no VNF may be named vswitch"),
    ],
)
def test_each_mistake_has_its_place(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    path = written(tmp_path, CHAINS.replace(right, wrong))
    with pytest.raises(ConfigError) as caught:
        load_chains(path)
    assert str(caught.value).startswith(f"{path}:{message}") and "\n" not in str(caught.value)


def test_the_example_of_the_how_to_has_chains(tmp_path: Path) -> None:
    page = (SPECS.parents[2] / "docs" / "how-to" / "write-chain-policies.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    found = generate(load_chains(written(tmp_path, example)))
    assert (found.orders, found.count) == ({1: 4, 2: 9, 3: 6}, 31)


@pytest.mark.parametrize(
    ("order", "kinds", "position"),
    [
        ("gateway monitor nat", ("linux_gateway", "linux_nat"), 2),
        ("monitor nat", ("linux_nat",), 1),
        ("nat monitor", ("linux_nat",), 2),
        ("monitor", (), 1),
    ],
    ids=["between nodes", "before the first", "behind the last", "the path alone"],
)
def test_inline_ones_are_nodes_and_passive_ones_get_copies(order: str, kinds: tuple[str, ...], position: int) -> None:
    cell = cell_of(chain(*order.split()), four_vnfs())
    assert (cell.nf_nodes, cell.nf_kinds) == (len(kinds), tuple(map(NfKind, kinds)))
    assert [(tap.kind, tap.position) for tap in cell.taps] == [(NfKind("tcpdump"), position)]
    assert cell.limits == ()


FAULTY = four_vnfs(faults=(FAULT,))


def test_a_fault_is_planted_in_its_chain_only_and_memory_of_a_range_beside_it_is_a_limit() -> None:
    cell = cell_of(chain("nat", "gateway"), FAULTY)
    assert cell.limits == (Limits(cpu=0.02), Limits())
    assert planted(chain("nat", "gateway"), FAULTY) == "nat is limited to 0.02 CPUs"
    assert cell_of(chain("gateway", "nat"), FAULTY).limits == ()
    assert planted(chain("gateway", "nat"), FAULTY) is None
    passive = Fault(chain=("monitor", "nat"), vnf="monitor", limits=Limits(cpu=0.02))
    assert cell_of(chain("monitor", "nat"), four_vnfs(faults=(passive,))).taps[0].limits == Limits(cpu=0.02)
    assert cell_of(chain("gateway", "nat", memory_mib=64), four_vnfs()).limits == (Limits(memory_mib=64),) * 2
    fault = FAULT.model_copy(update={"limits": Limits(cpu=0.1, memory_mib=128)})
    limits = cell_of(chain("nat", "gateway", memory_mib=64), four_vnfs(faults=(fault,))).limits
    assert limits[0] == Limits(cpu=0.1, memory_mib=64)


@pytest.mark.parametrize(
    "names", ["nf-1-1:nat tap-1-1:monitor nf-1-2:gateway", "tap-1-1:monitor nf-1-1:nat tap-1-2:grep"]
)
def test_names_of_the_plan_lead_to_vnfs(names: str) -> None:
    found = dict(each.split(":") for each in names.split())
    watched = four_vnfs(vnfs=(*VNFS, VnfSpec(name="grep", kind=NfKind("ngrep"), mode=Mode.PASSIVE)))
    assert owners(chain(*found.values()), watched) == found


def test_a_program_goes_to_its_node_and_what_forwards_packets_cannot_be_passive() -> None:
    program = UserProgram(start=("sleep", "9"))
    vnfs = (VNFS[0], VnfSpec(name="own", kind=NfKind("process"), program=program))
    assert cell_of(chain("gateway", "own"), four_vnfs(vnfs=vnfs)).programs == (None, program)
    vnfs = (VnfSpec(name="nat", kind=NfKind("linux_nat"), mode=Mode.PASSIVE),)
    with pytest.raises(PlanError, match=r"nat: an NF of kind linux_nat cannot be passive"):
        cell_of(chain("nat"), four_vnfs(vnfs=vnfs))


MACHINES = four_vnfs(vnfs=(VnfSpec(name="vm", kind=NfKind("qemu")), *VNFS))


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ("vm", "eth-l2bd-1ch-2vh-1vm1t-lnxip4"),
        ("monitor vm", "eth-l2bd-1ch-2vh-1vm1t-lnxip4-tap1tcpdump"),
        ("nat", "eth-l2bd-1ch-2veth-1dcr1t-lnxnat"),
        ("vm nat", "eth-l2bd-1ch-4veth-1dcr1t+1vm-lnxip4+lnxnat"),
    ],
)
def test_virtual_machines_are_chained_with_each_other_and_with_containers(order: str, name: str) -> None:
    cell = cell_of(chain(*order.split()), MACHINES)
    plan = make_plan(shipped("local"), cell, shipped("available/lab-2n-kernel").dut.layout)
    assert plan.suite_id == name
    assert [function.kind for function in plan.functions] == list(cell.nf_kinds)
