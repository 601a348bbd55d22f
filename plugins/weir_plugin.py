"""What Airflow's plugin manager loads of Weir. The library itself is the package `weir`, which
.airflowignore keeps from being executed file by file."""

from airflow.plugins_manager import AirflowPlugin


class WeirPlugin(AirflowPlugin):
    """Names Weir among Airflow's plugins."""

    name = "weir"
