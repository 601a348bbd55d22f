"""Which cut a stream may be truncated at, and why (PDP-47, by consumption). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.stream_cut import StreamCut, join, meet


@dataclass(frozen=True)
class Decision:
    """What to do with a stream: the cut to truncate at (None: nothing), the rule, and why."""

    cut: StreamCut | None
    rule: str
    reason: str
    bound: StreamCut | None
    held_by: tuple[str, ...]


def decide(
    head: StreamCut, subscribers: Mapping[str, StreamCut], *, by_consumption: bool
) -> Decision:
    """The decision for one stream. `subscribers`: what each has released.

    Without a subscriber and without a limit nothing is ever truncated. A subscriber's cut behind
    the head counts as the head. The bound is the exact, order-free meet (semantics 11.3).
    """
    if not by_consumption:
        return Decision(None, "no_rule", "the stream has no retention rule", None, ())
    if not subscribers:
        return Decision(
            None,
            "no_rule",
            "no subscriber reads the stream, so nothing counts as consumed",
            None,
            (),
        )
    released = {name: join(cut, head) for name, cut in subscribers.items()}
    bound = meet(released.values())
    # Those without whom the bound would lie further on.
    held_by = tuple(
        name
        for name in sorted(released)
        if len(released) == 1
        or meet([cut for other, cut in released.items() if other != name]) != bound
    ) or tuple(sorted(released))
    if bound == head:
        return Decision(
            None,
            "nothing_consumed",
            f"nothing beyond the head is consumed by all subscribers; held by {', '.join(held_by)}",
            bound,
            held_by,
        )
    return Decision(
        bound,
        "consumed",
        f"all subscribers are past it; held by {', '.join(held_by)}",
        bound,
        held_by,
    )
