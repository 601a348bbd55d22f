"""What Airflow's plugin manager loads of Weir: the wheel names it as an entry point, and
`plugins/weir_plugin.py` imports it in the source tree."""

from airflow.plugins_manager import AirflowPlugin


class WeirPlugin(AirflowPlugin):
    """Names Weir among Airflow's plugins."""

    name = "weir"
