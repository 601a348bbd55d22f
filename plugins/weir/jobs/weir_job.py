"""Run one action as a job: `weir_job.py ACTION --run JSON --arguments JSON`.

WeirJobOperator submits this file."""

import sys

from weir.actions import ACTIONS
from weir.operations.runner import main

if __name__ == "__main__":
    sys.exit(main(ACTIONS))
