"""The name of this machine, as Airflow's components tell it to each other."""


def hostname() -> str:
    """Return the address where the log server of a local installation listens."""
    return "127.0.0.1"
