"""Up to which load a prediction may be trusted."""

from collections.abc import Sequence

import pytest

from resources.libraries.python.studies.sweep.analysis.chain_prediction import trust
from resources.libraries.python.studies.sweep.analysis.sentences import trust_in_words
from resources.libraries.python.studies.sweep.model.profile import PredictedPoint, Prediction, ProfileMetric


def words(rows: Sequence[tuple[float, ProfileMetric, float, float]]) -> list[str]:
    """Of a prediction with these points: rate, metric, predicted, measured."""
    points = tuple(
        PredictedPoint(rate=rate, predicted={metric: predicted}, measured={metric: measured})
        for rate, metric, predicted, measured in rows
    )
    found = Prediction(chain="c", parts=("a",), model="hungriest", points=points, errors={})
    return [f"{each.metric} {trust_in_words(each)}" for each in trust(found)]


def test_trust_ends_at_the_first_load_that_is_wrong_whatever_comes_behind_it() -> None:
    delays = [
        (3.0, ProfileMetric.DELAY, 2.0, 2.0),
        (1.0, ProfileMetric.DELAY, 1.2, 1.0),
        (2.0, ProfileMetric.DELAY, 1.3, 1.0),
    ]
    assert words(delays) == ["delay within 25 % up to 1 Gbit/s"]


def test_what_is_never_wrong_and_what_always_is() -> None:
    rows = [
        (1.0, ProfileMetric.THROUGHPUT, 1.05, 1.0),
        (2.0, ProfileMetric.THROUGHPUT, 1.0, 1.1),
        (1.0, ProfileMetric.DELAY, 2.0, 1.0),
    ]
    assert words(rows) == ["throughput within 10 % at all rates", "delay within 25 % at no rate"]


@pytest.mark.parametrize(
    ("metric", "right", "wrong", "measured"),
    [
        (ProfileMetric.THROUGHPUT, 1.09, 1.11, 1.0),
        (ProfileMetric.THROUGHPUT, 0.91, 0.89, 1.0),
        (ProfileMetric.DELAY, 1.24, 1.26, 1.0),
        (ProfileMetric.LOSS, 4.9, 5.1, 0.0),
    ],
)
def test_a_prediction_is_right_within_10_percent_25_of_delay_and_5_points_of_loss(
    metric: ProfileMetric, right: float, wrong: float, measured: float
) -> None:
    assert words([(1.0, metric, right, measured)])[0].endswith("at all rates")
    assert words([(1.0, metric, wrong, measured)])[0].endswith("at no rate")


def test_loss_is_judged_in_points_and_what_was_not_measured_not_at_all() -> None:
    assert words([(1.0, ProfileMetric.LOSS, 4.0, 0.0), (2.0, ProfileMetric.LOSS, 40.0, 30.0)]) == [
        "loss within 5 points up to 1 Gbit/s"
    ]
    assert words([]) == []
