"""Profiles of services that let everything through up to a capacity, made without any fitting."""

from resources.libraries.python.studies.sweep.model.profile import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
)

LAST = 4.0


def function(name: str, formula: str, first: float = 0.1, last: float = LAST, **coefficients: float) -> Fit:
    """A function of the catalogue."""
    return Fit(
        function=name,
        formula=formula,
        coefficients=coefficients,
        standard_error=0.0,
        relative_error=0.0,
        points=20,
        first_rate=first,
        last_rate=last,
    )


def line(slope: float, base: float) -> Fit:
    return function("linear", "a*r+b", a=slope, b=base)


def known_profile(
    name: str,
    capacity: float | None,
    *,
    used: float = 1.0,
    vcpus: int = 1,
    delay_ms: float = 0.5,
    saturated_ms: float = 10.0,
) -> Profile:
    """Lets r through below its capacity and exactly the capacity above; delay is constant below, a + r above."""
    if capacity is None:
        metrics = (
            MetricProfile(metric=ProfileMetric.THROUGHPUT, nonsat=line(1, 0), sat=None),
            MetricProfile(metric=ProfileMetric.DELAY, nonsat=line(0, delay_ms), sat=None),
            MetricProfile(metric=ProfileMetric.LOSS, nonsat=line(0, 0), sat=None),
        )
        return Profile(name=name, break_point=None, metrics=metrics)
    metrics = (
        MetricProfile(metric=ProfileMetric.THROUGHPUT, nonsat=line(1, 0), sat=line(0, capacity)),
        MetricProfile(metric=ProfileMetric.DELAY, nonsat=line(0, delay_ms), sat=line(1, saturated_ms)),
        MetricProfile(
            metric=ProfileMetric.LOSS, nonsat=line(0, 0), sat=function("excess", "100*(1-d/(r-g))", d=capacity, g=0.0)
        ),
    )
    point = BreakPoint(rate=capacity, vnf=name, cpus_used=used, cpus_there=vcpus, reason="known")
    return Profile(name=name, break_point=point, metrics=metrics)
