"""The configuration of a reader group: what may be asked for when it is created or updated."""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.errors import InvalidInput, check_choice
from weir.front_ends import called
from weir.model.amounts import LONGEST, say_age
from weir.model.changed_settings import with_settings

ON_GAP = ("fail", "skip")
RELEASE = ("automatic", "manual")


@dataclass(frozen=True)
class GroupConfiguration:
    """What was asked for; each field is a column of the table `reader_group`.

    `subscriber`: whether retention keeps what the group has not released. `on_gap`: what becomes of
    a batch whose events were truncated. `release`: whether checkpoints release events. `time_out`:
    how many seconds a subscriber with unread events may be inactive before retention stops waiting
    for it; None: for ever. `max_outstanding`: how many checkpoints may wait for batches at a time.
    `aligned`: whether each batch holds, of all streams, everything up to one clock and nothing
    after it. `max_ahead`: seconds by which no batch goes beyond what other readers have not read;
    None: no such limit. `owner`: the role of the database whose members read with it and change it;
    None: everybody. `subject`: the column of what its consumers write that has the routing keys of
    what they read, by which copies are found; empty: the one of the same name.
    """

    subscriber: bool = True
    on_gap: str = "fail"
    release: str = "automatic"
    time_out: int | None = None
    max_outstanding: int = 3
    aligned: bool = False
    max_ahead: int | None = None
    owner: str | None = None
    subject: str = ""

    def check(self) -> None:
        """Check the settings. Raises InvalidInput naming the setting and what it may be."""
        check_choice(called("on_gap"), self.on_gap, ON_GAP)
        check_choice(called("release"), self.release, RELEASE)
        if self.time_out is not None and not 1 <= self.time_out <= LONGEST:
            raise InvalidInput(
                "argument_invalid",
                f"{called('time_out')} is {self.time_out} s; it must be more than 0 and "
                f"at most {say_age(LONGEST)}, or none for no time-out.",
            )
        if self.max_outstanding < 1:
            raise InvalidInput(
                "argument_invalid",
                f"{called('max_outstanding')} is {self.max_outstanding}; it must be 1 or more.",
            )
        if self.max_ahead is not None and not 1 <= self.max_ahead <= LONGEST:
            raise InvalidInput(
                "argument_invalid",
                f"{called('max_ahead')} is {self.max_ahead} s; it must be more than 0 and at most "
                f"{say_age(LONGEST)}, or none for no limit.",
            )

    def changed(self, changes: Mapping[str, object]) -> "GroupConfiguration":
        """Return the configuration with other settings. Raises InvalidInput for an unknown or a
        wrong one."""
        return with_settings(self, changes, "a reader group")
