"""The name of this machine that Airflow's components use for each other."""


def hostname() -> str:
    """Return the address at which the log server of a local installation listens."""
    return "127.0.0.1"
