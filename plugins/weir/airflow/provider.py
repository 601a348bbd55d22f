"""What Airflow asks a package that is a provider: the type of its connections, and its decorators
of tasks. It imports nothing, because every process of Airflow reads it."""


def get_provider_info() -> dict[str, object]:
    """Return what Airflow's `apache_airflow_provider` entry points return."""
    return {
        "package-name": "weir-streams",
        "name": "Weir",
        "description": "A durable, elastic stream store on Airflow, PySpark, Postgres and Parquet.",
        "connection-types": [
            {
                "connection-type": "weir",
                "hook-name": "Weir",
                "hook-class-name": "weir.airflow.connection.WeirHook",
                "ui-field-behaviour": {
                    "hidden-fields": [],
                    "relabeling": {"schema": "Database"},
                    "placeholders": {
                        "host": "where Postgres runs",
                        "port": "5432",
                        "schema": "weir",
                        "login": "weir_app",
                        "extra": '{"input_roots": ["/data/input"]}: other settings of weir.toml',
                    },
                },
                "conn-fields": {
                    "warehouse": {
                        "label": "Warehouse",
                        "description": "The folder or URI of the warehouse.",
                        "schema": {"type": ["string", "null"]},
                    },
                    "config": {
                        "label": "Settings file",
                        "description": "The weir.toml of the installation on the workers. What "
                        "this form has beside it counts in its place.",
                        "schema": {"type": ["string", "null"]},
                    },
                },
            }
        ],
        "task-decorators": [
            {"class-name": "weir.airflow.decorators.weir_append", "name": "weir_append"},
            {"class-name": "weir.airflow.dag_functions.weir_process", "name": "weir_process"},
        ],
    }
