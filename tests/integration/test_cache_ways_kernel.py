"""Cache ways of NFs by the kernel's own resctrl, where there is one."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu import resctrl
from resources.libraries.python.drivers.host.cpu.cache_facts import ROOT, answer
from resources.libraries.python.drivers.host.cpu.resctrl import CacheDivision
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.model.plan import OTHERS, CachePart

FOUND = resctrl.discover()


@pytest.mark.skipif(FOUND is None, reason=str(answer({}).get("why")))
def test_ways_are_set_read_back_and_given_back(tmp_path: Path) -> None:
    assert FOUND is not None
    cpu, domain = next(iter(FOUND.domains.items()))
    mask = (1 << FOUND.least) - 1
    if FOUND.reserved & mask:
        mask <<= FOUND.ways - FOUND.least
    parts = (
        CachePart(owner="nf-1-1", cpus=(cpu,), masks={domain: mask}),
        CachePart(owner=OTHERS, cpus=(), masks={domain: FOUND.mask & ~mask}),
    )
    before = (Path(ROOT) / "schemata").read_text(encoding="ascii")
    with MachineLock(tmp_path) as lock:
        made = CacheDivision(parts, lock.claim, lock.release)
        made.make()
        group = Path(ROOT) / "csit-nf-1-1"
        assert f"{domain}={mask:x}" in (group / "schemata").read_text(encoding="ascii").replace("=0", "=")
        assert lock.leftovers()
        assert lock.remove_claimed()
        assert not group.exists()
        assert (Path(ROOT) / "schemata").read_text(encoding="ascii") == before
