"""A service instance that is measured alone stays where it is beside others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.interference.planning import first_instances
from tests.unit.planning.polled_ports import together

KINDS = st.lists(st.sampled_from([*map(NfKind, ("linux_router", "ngrep", "nginx_proxy"))]), min_size=1, max_size=5)


@given(kinds=KINDS, data=st.data())
def test_what_stays_is_as_it_was_and_nothing_of_the_others_stays(kinds: list[NfKind], data: st.DataObject) -> None:
    whole = together(kinds)
    count = data.draw(st.integers(1, len(kinds)))
    part = first_instances(whole, count)
    gone = {function.name for function in whole.functions if function.instance > count}
    assert part.functions == whole.functions[:count]
    assert part.cell.instance_kinds == tuple(kinds[:count])
    assert part.cell.nf_chains == count
    for function in part.functions:
        assert part.cores.cpus(function.name) == whole.cores.cpus(function.name)
    assert part.cores.cpus("vswitch") == whole.cores.cpus("vswitch")
    assert not gone & {port.owner for port in part.ports()}
    assert not gone & {thread.owner for thread in part.cores.threads}
    for rows in (part.flows, part.paths, part.segments):
        assert {row.instance for row in rows} == set(range(1, count + 1))
    assert set(part.links) <= set(whole.links)


@pytest.mark.parametrize("discriminator", ["link", "vlan", "mac"])
def test_the_first_alone_is_wired_as_if_no_other_had_been_planned(discriminator: str) -> None:
    """Also where instances share the cables to the generator."""
    router = NfKind("linux_router")
    part = first_instances(together([router, NfKind("ngrep")], discriminator), 1)
    alone = together([router], discriminator)
    for what in ("links", "segments", "functions", "flows", "paths"):
        assert getattr(part, what) == getattr(alone, what), what


def test_there_are_only_so_many_and_those_that_share_an_nf_cannot_be_alone() -> None:
    whole = together([NfKind("linux_router")] * 2)
    for count in (0, 3):
        with pytest.raises(ValueError, match=f"{count} of 2 service instances"):
            first_instances(whole, count)
    shared = tuple(function.model_copy(update={"instance": 0}) for function in whole.functions[:1])
    with pytest.raises(ValueError, match="service instances share nf-1-1"):
        first_instances(whole.model_copy(update={"functions": shared}), 1)
