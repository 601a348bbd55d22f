"""The scaling policy of a stream: when it has too few segments, and when too many (semantics 7)."""

from dataclasses import dataclass

from weir.errors import InvalidInput, check_choice
from weir.front_ends import called, give, leave_out
from weir.model.amounts import LONGEST, say_age

SCALING = ("fixed", "event_rate", "byte_rate")
MOST_SEGMENTS = 10_000
DEFAULT_COOLDOWN = 600  # seconds


@dataclass(frozen=True)
class ScalingPolicy:
    """How a stream scales by itself.

    `kind`: `fixed` (never), or by `event_rate` or `byte_rate`. `target_rate`: events or bytes per
    second and segment. `scale_factor`: the most segments into which one is split. `min_segments`,
    `max_segments`: no scale leaves fewer or more; a maximum of None is no limit. `cooldown`: the
    seconds that a new segment is left as it is.
    """

    kind: str = "fixed"
    target_rate: int | None = None
    scale_factor: int | None = None
    min_segments: int = 1
    max_segments: int | None = None
    cooldown: int = DEFAULT_COOLDOWN

    @property
    def is_fixed(self) -> bool:
        """Whether the stream never scales by itself."""
        return self.kind == "fixed"

    @property
    def unit(self) -> str:
        """What the rates count: events or bytes."""
        return "bytes" if self.kind == "byte_rate" else "events"

    def check(self) -> None:
        """Check the policy. Raises InvalidInput naming the setting and what it may be."""
        check_choice(called("scaling"), self.kind, SCALING)
        check_count("min_segments", self.min_segments)
        if not 0 <= self.cooldown <= LONGEST:
            raise InvalidInput(
                "argument_invalid",
                f"{called('scale_cooldown')} is {self.cooldown} s; it must be between 0 and "
                f"{say_age(LONGEST)}.",
            )
        if self.is_fixed:
            self._check_no_rate()
            return
        if self.target_rate is None or self.target_rate < 1:
            raise InvalidInput(
                "argument_invalid",
                f"{called('target_rate')} is {_shown(self.target_rate)}; with scaling "
                f"{self.kind} it must be a whole number per second and segment, 1 or more.",
            )
        if self.scale_factor is None or self.scale_factor < 2:
            raise InvalidInput(
                "argument_invalid",
                f"{called('scale_factor')} is {_shown(self.scale_factor)}; it must be 2 or "
                "more, because a segment is split into at least two.",
            )
        if self.max_segments is not None:
            check_count("max_segments", self.max_segments)
            if self.max_segments < self.min_segments:
                raise InvalidInput(
                    "arguments_conflict",
                    f"{called('max_segments')} is {self.max_segments}, which is less than "
                    f"{called('min_segments')} ({self.min_segments}); raise the first or lower the "
                    "second.",
                )

    def _check_no_rate(self) -> None:
        for setting in ("target_rate", "scale_factor", "max_segments"):
            if getattr(self, setting) is not None:
                raise InvalidInput(
                    "arguments_conflict",
                    f"{called(setting)} has no effect when {called('scaling')} is 'fixed'; "
                    f"{leave_out(setting)}, or {give(scaling='event_rate')} (or byte_rate).",
                )


def check_count(setting: str, count: int) -> None:
    """Check a number of segments. Raises InvalidInput."""
    if not 1 <= count <= MOST_SEGMENTS:
        raise InvalidInput(
            "argument_invalid",
            f"{called(setting)} is {count}; it must be between 1 and {MOST_SEGMENTS}.",
        )


def _shown(value: int | None) -> int | str:
    return "not given" if value is None else value
