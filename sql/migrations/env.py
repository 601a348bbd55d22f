"""Alembic's entry: a migration at a time on the connection that `weir.database.migrate` opened."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(
    connection=connection, version_table_schema="weir_internal", transactional_ddl=True
)
with context.begin_transaction():
    context.run_migrations()
