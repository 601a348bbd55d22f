"""The retention policy of a stream: what must be kept, and what must not."""

from dataclasses import dataclass

from weir.errors import InvalidInput, check_choice
from weir.front_ends import called, give, leave_out
from weir.model.amounts import LARGEST, LONGEST, say_age, say_size

RETENTION = ("keep", "age", "size", "consumed")
# What `consumed` keeps at least, unless its owner says otherwise: time to find out that a function
# was wrong, and to add a reader.
CONSUMED_MIN_AGE = 7 * 86_400
_LIMITS = ("min_age", "max_age", "min_bytes", "max_bytes")
_NEEDS = {"age": "max_age", "size": "max_bytes"}


@dataclass(frozen=True)
class Policy:
    """What retention may truncate of a stream (semantics 11.1), in seconds and bytes; None: no such
    limit.

    `retention`: `keep` truncates nothing; `age` and `size` what exceeds a maximum; `consumed` also
    what all subscribers have released. With limits in both units, Weir truncates only what both
    minimums allow, and everything that exceeds either maximum. A maximum never undercuts a minimum
    (semantics 11.6).
    """

    retention: str = "keep"
    min_age: int | None = None
    max_age: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None

    @property
    def by_consumption(self) -> bool:
        """Whether subscribers hold events back, and release them."""
        return self.retention == "consumed"

    @property
    def has_maximum(self) -> bool:
        """Whether something must not be kept even if it is not consumed."""
        return self.max_age is not None or self.max_bytes is not None

    def said_of(self, stream: str) -> str:
        """Return in one line what retention deletes of a stream, and when."""
        if self.retention == "keep":
            return f"stream {stream} keeps everything (its retention is keep)"
        beyond = [f"older than {say_age(self.max_age)}"] if self.max_age is not None else []
        beyond += [f"beyond {say_size(self.max_bytes)}"] if self.max_bytes is not None else []
        least = (
            "" if self.min_bytes is None else f"; the newest {say_size(self.min_bytes)} are kept"
        )
        if self.retention != "consumed":
            if self.min_age is not None:
                least += f"; what is younger than {say_age(self.min_age)} is kept"
            return f"events of {stream} {' or '.join(beyond)} are truncated, read or not{least}"
        when = "in the next run of retention"
        if self.min_age is not None:
            when = f"{say_age(self.min_age)} after they were appended"
        most = f"; what is {' or '.join(beyond)} is truncated, read or not" if beyond else ""
        return (
            f"events of {stream} that all subscribers have released are truncated {when}{most}"
            f"{least}"
        )

    @property
    def in_short(self) -> str:
        """Return in a few words what the stream keeps: `7 d`, `until released, 7 d at least`."""
        if self.retention == "keep":
            return "everything"
        least = [say_age(self.min_age)] if self.min_age is not None else []
        least += [say_size(self.min_bytes)] if self.min_bytes is not None else []
        most = [say_age(self.max_age)] if self.max_age is not None else []
        most += [say_size(self.max_bytes)] if self.max_bytes is not None else []
        parts = ["until released"] if self.by_consumption else []
        parts += [f"{' and '.join(most)} at most"] if most and (parts or least) else most
        parts += [f"{' and '.join(least)} at least"] if least else []
        return ", ".join(parts)

    def check(self) -> None:
        """Check the retention and its limits. Raises InvalidInput naming what is wrong."""
        check_choice(called("retention"), self.retention, RETENTION)
        limits = [name for name in _LIMITS if getattr(self, name) is not None]
        if self.retention == "keep" and limits:
            raise InvalidInput(
                "arguments_conflict",
                f"{called('retention')} is keep, which deletes nothing, and "
                f"{called(f'retain_{limits[0]}')} is given; {leave_out(f'retain_{limits[0]}')}, or "
                f"{give(retention='age')} (or size, consumed).",
            )
        needed = _NEEDS.get(self.retention)
        if needed is not None and needed not in limits:
            raise InvalidInput(
                "arguments_conflict",
                f"{called('retention')} is {self.retention}, which needs "
                f"{called(f'retain_{needed}')}; say beyond which {self.retention} events are "
                "truncated.",
            )
        for unit, low, high, say, most in (
            ("age", self.min_age, self.max_age, say_age, LONGEST),
            ("bytes", self.min_bytes, self.max_bytes, say_size, LARGEST),
        ):
            for which, limit in (("minimum", low), ("maximum", high)):
                if limit is not None and not 1 <= limit <= most:
                    raise InvalidInput(
                        "argument_invalid",
                        f"the {which} {unit} of retention is {limit}; it must be more than 0 and "
                        f"at most {say(most)}, or none for no limit.",
                    )
            if low is not None and high is not None and high < low:
                raise InvalidInput(
                    "arguments_conflict",
                    f"the maximum {unit} of retention is {say(high)}, which is less than the "
                    f"minimum, {say(low)}; raise the maximum or lower the minimum.",
                )


def check_every(setting: str, seconds: int | None) -> None:
    """Check an interval in seconds; None: in every run. Raises InvalidInput."""
    if seconds is not None and not 1 <= seconds <= LONGEST:
        raise InvalidInput(
            "argument_invalid",
            f"{called(setting)} is {seconds} s; it must be more than 0 and at most "
            f"{say_age(LONGEST)}, or none to do it in every run.",
        )
