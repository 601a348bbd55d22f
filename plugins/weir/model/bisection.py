"""Divide the bounds of a failed batch into halves. Pure.

A part is a beginning of the list of bounds, which has predecessors before successors, so a position
is still one offset per segment. The parts stay with the one reader, one after the other.
"""

from collections.abc import Sequence

from weir.model.bounds import Bound


def halve(bounds: Sequence[Bound]) -> tuple[list[Bound], list[Bound]]:
    """Return the bounds of the first half of the events, and the bounds of the rest.

    The bounds must hold at least two events. They have predecessors before successors, so what the
    first half leaves out comes later for every key.
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
