"""The retention policy of a stream: what must be kept, and what must not."""

from dataclasses import dataclass

from weir.errors import InvalidInput
from weir.model.amounts import LARGEST, LONGEST, say_age, say_size


@dataclass(frozen=True)
class Policy:
    """The switch and the limits of a stream, in seconds and bytes; None: no such limit.

    With limits in both units, Weir truncates only what both minimums allow, and everything that
    exceeds either maximum. A maximum never undercuts a minimum (semantics 11.6).
    """

    by_consumption: bool = True
    min_age: int | None = None
    max_age: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None

    @property
    def has_minimum(self) -> bool:
        """Whether something must be kept even if it is consumed."""
        return self.min_age is not None or self.min_bytes is not None

    @property
    def has_maximum(self) -> bool:
        """Whether something must not be kept even if it is not consumed."""
        return self.max_age is not None or self.max_bytes is not None

    def check(self) -> None:
        """Check the limits. Raises InvalidInput naming the limit and its value."""
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
    """Check an interval in seconds; None: every run of its DAG. Raises InvalidInput."""
    if seconds is not None and not 1 <= seconds <= LONGEST:
        raise InvalidInput(
            "argument_invalid",
            f"{setting} is {seconds} s; it must be more than 0 and at most {say_age(LONGEST)}, or "
            "none to do it in every run of the DAG.",
        )
