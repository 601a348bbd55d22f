"""A batch that failed is read again in halves. Pure: where its bounds are divided."""

from collections.abc import Sequence

from weir.model.bounds import Bound


def halve(bounds: Sequence[Bound]) -> tuple[list[Bound], list[Bound]]:
    """The bounds of the first half of the events, and of the rest; at least two are needed.

    Bounds come with predecessors before successors, so whatever a beginning of them leaves out
    comes later for every key, too.
    """
    left = sum(bound.end - bound.start for bound in bounds) // 2
    first, rest = [], []
    for bound in bounds:
        taken = min(left, bound.end - bound.start)
        if left == 0:
            rest.append(bound)
        elif bound.start + taken == bound.end:
            first.append(bound)
        else:
            middle = bound.start + taken
            first.append(bound._replace(end=middle, completes=False))
            rest.append(bound._replace(start=middle))
        left -= taken
    return first, rest
