"""Loss patterns in reports and datasets."""

from csit_utils.report.details.loss_patterns import loss_pattern_figure, loss_patterns
from resources.libraries.python.search.losses import flow_in_words, worst_flow
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.measured_extras import LOSSES


def test_the_table_has_a_sentence_for_every_flow() -> None:
    lines = loss_patterns(LOSSES)
    assert [(line.load, line.direction) for line in lines] == [
        (load, direction) for load in ("NDR", "PDR") for direction in ("forward", "reverse")
    ]
    assert lines[0].sentence == "none of 20,000 packets lost" and not lines[0].largest_extent
    lossy = lines[2]
    assert " at random; " in lossy.sentence and "packets reordered" in lossy.sentence
    assert lossy.lost == LOSSES[1].flows[0].lost and lossy.longest >= 1
    assert lossy.largest_extent and lossy.three_reordered


def test_the_figure_has_losses_over_time_by_length_and_the_order() -> None:
    figure = loss_pattern_figure("losses-1", "loss patterns", LOSSES, simulated=True)
    assert figure is not None and figure.simulated
    assert figure.selectors == (("PDR",), ("over time", "loss periods by length", "reorder density"))
    over_time = figure.variants["PDR|over time"]["data"]
    assert len(over_time) == 1 and len(over_time[0]["x"]) == len(LOSSES[1].flows[0].listed)
    assert loss_pattern_figure("losses-1", "loss patterns", LOSSES[:1], simulated=True) is None


def test_the_worst_flow_of_each_load_is_a_column() -> None:
    sentences = {row.label: flow_in_words(worst_flow(row)) for row in LOSSES}
    made = plain(1, 1, 2e5).model_copy(update={"losses": LOSSES, "loss_patterns": sentences})
    assert DensityRecord.model_validate_json(made.model_dump_json()) == made
    (row,) = rows_of_tests(dataset_of(made))
    assert row.loss_patterns.startswith(
        "NDR: instance 1 forward: none of 20,000 packets lost; PDR: instance 1 forward: 1 in "
    )
