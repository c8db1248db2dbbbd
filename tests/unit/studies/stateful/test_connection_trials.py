"""Whether a trial says something of the tables, or of losses before them."""

import pytest

from resources.libraries.python.studies.stateful.model.record import ConnectionTrial, InstanceConnections, Phase

Row = tuple[int, int, int]


def trial(rows: list[Row], dropped: int | None = 0, evicted: int | None = 0) -> ConnectionTrial:
    instances = tuple(InstanceConnections(sent=sent, arrived=arrived, entries=held) for sent, arrived, held in rows)
    return ConnectionTrial(
        phase=Phase.CAPACITY, load_cps=1000.0, duration_s=1.0, instances=instances,
        failed=0, dropped=dropped, evicted=evicted,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "refused", "held", "reached"),
    [
        (trial([(100, 100, 100), (100, 100, 100)]), False, 100, 100),
        (trial([(100, 95, 95), (100, 90, 91)]), False, 91, 95),  # lost before, or behind, the tables
        (trial([(100, 95, 80), (100, 94, 80)], evicted=29), True, 80, 95),
        (trial([(100, 80, 80), (100, 94, 94)], dropped=15), True, 80, 100),
        (trial([(100, 80, 80)], dropped=None), True, 80, 100),  # nothing tells whether the table refused some
    ],
)
def test_losses_before_a_table_are_distinguished_from_its_refusals(
    made: ConnectionTrial, *, refused: bool, held: int, reached: int
) -> None:
    assert (made.refused, made.held, made.reached) == (refused, held, reached)
