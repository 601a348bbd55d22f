-- The table of example_table_by_asset. `weir up --examples` makes it; elsewhere the owner of the database runs this.
CREATE SCHEMA IF NOT EXISTS example;
CREATE TABLE IF NOT EXISTS example.orders (
    order_id text PRIMARY KEY, customer text NOT NULL, amount double precision NOT NULL, at timestamptz NOT NULL
);
GRANT USAGE ON SCHEMA example TO weir_publisher, weir_reader;
GRANT INSERT ON example.orders TO weir_publisher;
GRANT SELECT ON example.orders TO weir_reader;
