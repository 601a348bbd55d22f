"""Where alerts hang on Airflow."""

from weir.airflow.offered import Offered

OFFERED = Offered(names={"AlertsOperator": "weir.annex.alerts.operator"})
