"""Connections of the type `weir`, which name an installation: one Airflow can use several."""

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import URL

from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound, WeirError
from weir.model.names import shortened
from weir.settings import Settings, hasty, load, of_connection


class WeirHook(BaseHook):
    """Return the settings of the installation that a connection names, and test it.

    The connection has the address and the login of Postgres, the warehouse, and in its extra any
    other setting of weir.toml; or the path of a weir.toml on the workers, as `config`.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "weir_default"
    conn_type = "weir"
    hook_name = "Weir"

    def __init__(self, conn_id: str = default_conn_name, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id

    def settings(self) -> Settings:
        """Return the settings. Raises NotFound for a connection that does not exist, and
        InvalidInput for one of another type, and for a wrong setting."""
        check_connection(self.conn_id)
        try:
            connection = self.get_connection(self.conn_id)
        except AirflowNotFoundException:
            raise not_there(self.conn_id) from None
        if connection.conn_type != self.conn_type:
            raise InvalidInput(
                "setting_invalid",
                f"connection {self.conn_id!r} is of type {connection.conn_type!r}; name one of "
                "type weir.",
            )
        given = connection.extra_dejson.items()  # the form gives fields that were left empty, too
        extra = {name: value for name, value in given if value not in (None, "", [])}
        config = str(extra.pop("config", ""))
        if connection.host or connection.login or connection.schema:
            extra["database"] = _address(connection)
        return of_connection(config, extra)

    def get_conn(self) -> object:
        """Return the installation, as `weir.open` does."""
        import weir

        return weir.open(settings=self.settings())

    def test_connection(self) -> tuple[bool, str]:
        """Examine the installation: whether the database answers and has the layout of this
        version, what the login may do, and whether the warehouse is its own."""
        from weir.operations.examination import examine

        try:
            # Somebody waits for the answer of a button.
            settings = hasty(self.settings())
            with Database.of(settings) as database:
                checks = list(examine(settings, database))
        except WeirError as error:
            return False, str(error)
        lines = [f"{one.what}: {one.found}" + (one.remedy and f"; {one.remedy}") for one in checks]
        return all(one.ok is not False for one in checks), ". ".join(lines)


def not_there(conn_id: str) -> NotFound:
    """Return the error that there is no such connection."""
    return NotFound(
        "airflow_not_found",
        f"Airflow has no connection {shortened(conn_id)}; make one of type weir, or name one that "
        "exists.",
    )


def check_connection(conn_id: str) -> None:
    """Raise NotFound for what can be the name of no connection: no database can be asked for it."""
    if not conn_id.isprintable():
        raise not_there(conn_id)


def _address(connection: Connection) -> str:
    """Return the address of Postgres as libpq takes it."""
    url = URL.create(
        "postgresql", connection.login or None, connection.password or None,
        connection.host or None, connection.port, connection.schema or None,
    )  # fmt: skip
    return url.render_as_string(hide_password=False)


def settings_of(conn_id: str) -> Settings:
    """Return the settings of a connection; without one those of jobs, of WEIR_CONFIG or
    `weir.toml`."""
    return WeirHook(conn_id).settings() if conn_id else load()
