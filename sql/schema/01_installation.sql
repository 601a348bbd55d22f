-- The schema weir has what people may query: views and functions. weir_internal has the tables and the
-- functions behind them. Only Weir's jobs use weir_internal; it may change with every version.
CREATE SCHEMA weir;
COMMENT ON SCHEMA weir IS 'What people may query of Weir: views and functions.';
CREATE SCHEMA IF NOT EXISTS weir_internal; -- where Alembic has its table already
COMMENT ON SCHEMA weir_internal IS 'Weir''s tables, and the functions that only its jobs, views and public functions use.';
-- Its tables come and go with batches, so they are in a schema of their own.
CREATE SCHEMA weir_staging;
COMMENT ON SCHEMA weir_staging IS 'Rows that consumers wrote for tables, until their batch is committed.';
-- DuckLake's catalogue, as views; a schema of its own because DuckLake chooses the names.
CREATE SCHEMA weir_ducklake;
COMMENT ON SCHEMA weir_ducklake IS 'The streams as tables of DuckLake, which DuckDB attaches.';

-- Alembic's. The migrations in sql/migrations lead from one layout to the next.
CREATE TABLE IF NOT EXISTS weir_internal.alembic_version (
    version_num varchar(32) CONSTRAINT alembic_version_pkc PRIMARY KEY
);
COMMENT ON TABLE weir_internal.alembic_version IS 'The layout of this database, named after the last migration.';
COMMENT ON COLUMN weir_internal.alembic_version.version_num IS 'The version of Weir that brought the migration, with a number if it brought several.';

CREATE TABLE weir_internal.installation (
    installation_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    sweep_count bigint NOT NULL DEFAULT 0,
    swept_at timestamptz,
    incarnation text NOT NULL,
    warehouse text,
    batches_pruned timestamptz,
    one boolean NOT NULL DEFAULT true UNIQUE CHECK (one)
);
COMMENT ON TABLE weir_internal.installation IS 'The identity of this database. The warehouse has a file with the same id, and Weir compares the two before each delete.';
COMMENT ON COLUMN weir_internal.installation.installation_id IS 'Also in the file _weir_installation of the warehouse.';
COMMENT ON COLUMN weir_internal.installation.created_at IS 'When the database was first migrated.';
COMMENT ON COLUMN weir_internal.installation.sweep_count IS 'How many sweeps deleted files of the warehouse. The file _weir_installation has the number, too: a database with a lower one was restored from a backup.';
COMMENT ON COLUMN weir_internal.installation.swept_at IS 'When the last one began; null: there was none.';
COMMENT ON COLUMN weir_internal.installation.incarnation IS 'The result of weir_internal.incarnation() when the database was migrated or last recovered, or the backup from which it was restored since. If the function returns something else now, the database was restored from a backup, moved, or taken over by a standby.';
COMMENT ON COLUMN weir_internal.installation.warehouse IS 'Where the warehouse is, as the first job found it, for those who read files without Weir''s settings; null before, and after a recovery.';
COMMENT ON COLUMN weir_internal.installation.batches_pruned IS 'Batches that ended before it may have been pruned, and no others; null: none was.';
COMMENT ON COLUMN weir_internal.installation.one IS 'Always true: keeps the table at one row.';
