"""What Airflow finds in this folder. The library itself is the package `weir`, which .airflowignore
keeps from being executed file by file."""

from weir.airflow.plugin import WeirPlugin as WeirPlugin
