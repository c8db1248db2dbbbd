"""What differs in digits only is the same."""

from itertools import permutations

import pytest

from resources.libraries.python.studies.chains.analysis.study import analyse
from tests.unit.studies.chains.chain_runs import chain, run, spec_of

NAMES = ("a", "b", "c")
VOLUMES = (2e6, 4e6)


@pytest.mark.parametrize(("lost", "suspected"), [(1e-8, False), (0.2, True)])
def test_a_chain_whose_throughput_differs_by_digits_is_no_suspect(lost: float, *, suspected: bool) -> None:
    runs = [
        run(chain(*order), volume, volume * (1 - lost * (order == ("a", "b"))))
        for order in permutations(NAMES, 2)
        for volume in VOLUMES
    ]
    found = analyse(spec_of(NAMES, lengths=(2,), volumes_bps=VOLUMES), runs)
    assert bool([suspect for suspect in found.suspects if suspect.chain.order == ("a", "b")]) is suspected
