"""No DAG of Airflow: this file fails to be imported, and so shows among Airflow's import errors, if
a job in `spark_jobs` can't be imported. The DAGs of all other jobs run."""

from weir.airflow.dags import check_jobs

check_jobs()
