"""Where erasure hangs on the core: upkeep signs the certificates of which no file is left. And on
recovery: a restored database does not know what was erased since its backup, but its files may."""

from weir.annex.erasure.certificate import sign_waiting
from weir.annex.erasure.records import record_again
from weir.annex.erasure.restored import erased_since
from weir.annex.recovery.recover import BeforeRecovery
from weir.annex.recovery.substitutes import ErasedAgain
from weir.operations.shown import MOST, Table, counted
from weir.operations.steps import UpkeepStep
from weir.queries.annex.erasure import tables as sql

STEP = UpkeepStep("signed", lambda job: sign_waiting(job.database, job.settings.grace_period))
RECOVERY = BeforeRecovery(erased_since)
AGAIN = ErasedAgain(record_again)
CERTIFICATES = Table(
    "certificates", "Certificates",
    "The erasures that people asked for, each with its signed certificate, or what it waits for.",
    "Nobody asked for an erasure.",
    counted(
        lambda c, stream, passed: sql.certificates(c, stream=stream, passed=passed, most=MOST + 1)
    ),
)  # fmt: skip
