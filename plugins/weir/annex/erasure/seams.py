"""Where erasure hangs on the core: upkeep signs the certificates of which no file is left. And on
recovery: a restored database does not know what was erased since its backup, but its files may."""

from weir.annex.erasure.certificate import sign_waiting
from weir.annex.erasure.records import record_again
from weir.annex.erasure.restored import erased_since
from weir.annex.recovery.recover import BeforeRecovery
from weir.annex.recovery.substitutes import ErasedAgain
from weir.operations.steps import UpkeepStep

STEP = UpkeepStep("signed", lambda job: sign_waiting(job.database, job.settings.grace_period))
RECOVERY = BeforeRecovery(erased_since)
AGAIN = ErasedAgain(record_again)
