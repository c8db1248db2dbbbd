"""Flame graphs of sampled call stacks, and their differences between two sides. Pure.

A sample counts for every function in its stack, once for each. What a function takes is its share of the samples of the
cell, or its CPU time per packet: samples over their frequency, over the packets that came back meanwhile. Shares
compare two sides at their own rates; times compare what does the same work for each packet.

Counts are small, so each difference is tested: two proportions of independent samples, or two rates of a Poisson
process (normal approximation), with the error widened where several runs of a side differ by more than that
(quasi-likelihood, McCullagh and Nelder, Generalized Linear Models, 2nd edition, section 4.5), then adjusted for the
number of functions (Benjamini and Hochberg, 1995).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt

from csit_utils.analysis.comparisons.comparison import FALSE_CALLS, adjusted_probabilities
from resources.libraries.python import special_functions
from resources.libraries.python.model.measurements.stacks import OTHER, SEPARATOR, Stacks

FEWEST = 5
"""A difference is tested where both sides together have as many samples in a function, and as many beside it."""


@dataclass
class Flame:
    """A function as called by those before it in the stack."""

    name: str
    total: list[int]
    """Samples of each run."""
    own: list[int]
    """Samples in the function itself, not in what it calls."""
    children: "dict[str, Flame]" = field(default_factory=dict)

    def walk(self, path: tuple[str, ...] = ()) -> "Iterator[tuple[tuple[str, ...], Flame]]":
        """Yield all functions below with their paths, callers first."""
        for child in self.children.values():
            here = (*path, child.name)
            yield here, child
            yield from child.walk(here)


def flame(runs: Sequence[Mapping[str, int]]) -> Flame:
    """Return the tree of the stacks of runs.

    `runs`: samples by stack, the outermost function first.
    """
    root = Flame("", [0] * len(runs), [0] * len(runs))
    for number, counts in enumerate(runs):
        for stack, count in counts.items():
            at = root
            at.total[number] += count
            for name in stack.split(SEPARATOR):
                if name not in at.children:
                    at.children[name] = Flame(name, [0] * len(runs), [0] * len(runs))
                at = at.children[name]
                at.total[number] += count
            at.own[number] += count
    return root


def functions(counts: Mapping[str, int]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return samples of each owner and function: in it or what it calls, and in itself."""
    found: dict[tuple[str, str], list[int]] = {}
    for stack, count in counts.items():
        owner, *names = stack.split(SEPARATOR)
        for name in {*names, ""}:
            found.setdefault((owner, name), [0, 0])[0] += count
        found[owner, names[-1] if names else ""][1] += count
    return {key: (total, own) for key, (total, own) in found.items()}


@dataclass(frozen=True)
class StackDifference:
    """A function, or a path of functions, on both sides."""

    owner: str
    """Part of the cell."""
    function: str
    """Empty for all of the owner; a path has its functions joined by `;`."""
    samples_a: int
    samples_b: int
    share_a: float
    """Of the samples of the cell, in the function or what it calls."""
    share_b: float
    own_a: float
    """Share in the function itself."""
    own_b: float
    ns_a: float | None
    """CPU time per packet in nanoseconds; None if no packet came back."""
    ns_b: float | None
    own_ns_a: float | None
    """The same in the function itself."""
    own_ns_b: float | None
    probability: float | None
    """p-value: probability that sides of equal shares, or equal times per packet, differ as much; None with too few
    samples."""
    adjusted: float | None = None
    """p-value adjusted for the number of functions."""

    @property
    def difference(self) -> float:
        """Change of the share from A to B."""
        return self.share_b - self.share_a

    @property
    def difference_ns(self) -> float | None:
        """Change of the CPU time per packet from A to B, in nanoseconds."""
        return None if self.ns_a is None or self.ns_b is None else self.ns_b - self.ns_a

    @property
    def significant(self) -> bool:
        """Whether it exceeds the noise of sampling; about 5 % of those that do are expected to be false."""
        return self.adjusted is not None and self.adjusted <= FALSE_CALLS


@dataclass(frozen=True)
class StackSide:
    """Stacks of the runs of one side."""

    runs: tuple[Stacks, ...]

    @property
    def total(self) -> int:
        """Samples of the cell."""
        return sum(run.total for run in self.runs)

    @property
    def ns_per_sample(self) -> float | None:
        """CPU time per packet that a sample stands for, in nanoseconds."""
        received = sum(run.received for run in self.runs)
        return 1e9 * sum(run.busy_s for run in self.runs) / self.total / received if received and self.total else None


def differences(a: StackSide, b: StackSide, *, per_packet: bool = False) -> tuple[StackDifference, ...]:
    """Return all functions of both sides, significant ones first, then by the size of the difference.

    `per_packet`: compare CPU times per packet instead of shares.
    """
    tables = [[functions(run.counts) for run in side.runs] for side in (a, b)]
    keys = sorted({key for side in tables for table in side for key in table})
    rows = []
    for owner, name in keys:
        if name == OTHER:
            continue
        counts = [[table.get((owner, name), (0, 0)) for table in side] for side in tables]
        rows.append(_compared(owner, name, (a, b), counts, per_packet))
    return _judged(rows, per_packet)


def path_differences(a: StackSide, b: StackSide, *, per_packet: bool = False) -> dict[str, StackDifference]:
    """Return the differences of all paths of functions, which are the boxes of a flame graph, by path."""
    tree = flame([run.counts for side in (a, b) for run in side.runs])
    rows = []
    for path, node in tree.walk():
        each = list(zip(node.total, node.own, strict=True))
        counts = [each[: len(a.runs)], each[len(a.runs) :]]
        rows.append(_compared(path[0], SEPARATOR.join(path[1:]), (a, b), counts, per_packet))
    return {SEPARATOR.join(filter(None, (row.owner, row.function))): row for row in _judged(rows, per_packet)}


def _compared(
    owner: str,
    name: str,
    sides: tuple[StackSide, StackSide],
    counts: Sequence[Sequence[tuple[int, int]]],
    per_packet: bool,
) -> StackDifference:
    a, b = sides
    (total_a, own_a), (total_b, own_b) = (
        (sum(each[0] for each in side), sum(each[1] for each in side)) for side in counts
    )
    every_a, every_b = max(1, a.total), max(1, b.total)
    unit_a, unit_b = a.ns_per_sample, b.ns_per_sample
    return StackDifference(
        owner=owner,
        function=name,
        samples_a=total_a,
        samples_b=total_b,
        share_a=total_a / every_a,
        share_b=total_b / every_b,
        own_a=own_a / every_a,
        own_b=own_b / every_b,
        ns_a=None if unit_a is None else total_a * unit_a,
        ns_b=None if unit_b is None else total_b * unit_b,
        own_ns_a=None if unit_a is None else own_a * unit_a,
        own_ns_b=None if unit_b is None else own_b * unit_b,
        probability=probability(
            *(
                [(each[0], _sampled(run, per_packet)) for each, run in zip(found, side.runs, strict=True)]
                for found, side in zip(counts, (a, b), strict=True)
            ),
            per_packet=per_packet,
        ),
    )


def _sampled(run: Stacks, per_packet: bool) -> float:
    """Return what the samples of a function are compared with: all samples, or packets times samples per second."""
    if not per_packet:
        return run.total
    return run.received * run.total / run.busy_s if run.busy_s else 0.0


def probability(
    a: Sequence[tuple[float, float]], b: Sequence[tuple[float, float]], *, per_packet: bool = False
) -> float | None:
    """Return the p-value of two proportions, or of two rates.

    `a`: samples in a function, and all samples or all packets, of each run of a side.

    Returns:
        The two-sided p-value; None with fewer samples than `FEWEST` in the function, or beside it.
    """
    (in_a, all_a), (in_b, all_b) = ((sum(hit for hit, _ in side), sum(every for _, every in side)) for side in (a, b))
    if not all_a or not all_b:
        return None
    found, every = in_a + in_b, all_a + all_b
    if min(found, found if per_packet else every - found) < FEWEST:
        return None
    spread = _spread(found / every, per_packet)
    score = abs(in_a / all_a - in_b / all_b) / sqrt(spread * (1 / all_a + 1 / all_b))
    freedom = len(a) + len(b) - 2
    excess = sum(_pearson(side, per_packet) for side in (a, b)) / freedom if freedom > 0 else 1.0
    return 2 * float(
        special_functions.stdtr(freedom, -score / sqrt(excess)) if excess > 1 else special_functions.ndtr(-score)
    )


def _spread(share: float, per_packet: bool) -> float:
    """Variance of a count of one: binomial, or Poisson."""
    return share if per_packet else share * (1 - share)


def _pearson(side: Sequence[tuple[float, float]], per_packet: bool) -> float:
    """Pearson's statistic of the runs of a side about their common share or rate."""
    found, every = sum(hit for hit, _ in side), sum(each for _, each in side)
    share = found / every
    spread = _spread(share, per_packet)
    if spread <= 0:
        return 0.0
    return sum((hit - each * share) ** 2 / (each * spread) for hit, each in side if each)


def _judged(rows: Sequence[StackDifference], per_packet: bool) -> tuple[StackDifference, ...]:
    def size(row: StackDifference) -> float:
        return abs((row.difference_ns or 0.0) if per_packet else row.difference)

    tested = [row for row in rows if row.probability is not None]
    adjusted = adjusted_probabilities([row.probability or 0.0 for row in tested])
    judged = [replace(row, adjusted=value) for row, value in zip(tested, adjusted, strict=True)]
    judged += [row for row in rows if row.probability is None]
    return tuple(sorted(judged, key=lambda row: (not row.significant, -size(row), row.owner, row.function)))
