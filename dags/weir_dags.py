"""All DAGs of Weir, for Airflow. The page of each says what it does ("Dag Docs"), and the
documentation of its task has the code that runs: an action of `weir.actions`."""

from weir.airflow.dags import weir_dags

globals().update(weir_dags())
