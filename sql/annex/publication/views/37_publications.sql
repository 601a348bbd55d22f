CREATE OR REPLACE VIEW weir.publications AS
SELECT s.stream_name AS stream, s.publish AS format, p.root || '/' || p.metadata AS metadata_location, p.sequence AS snapshot,
       p.cut, weir_internal.clock_time(p.clock) AS published_until, p.published_at, p.files,
       t.events - coalesce(p.events, 0) AS behind_events,
       CASE WHEN t.events > coalesce(p.events, 0) THEN clock_timestamp() - coalesce(p.published_at, s.created_at) END AS behind_for,
       p.lease_until IS NOT NULL AND p.lease_until > clock_timestamp() AS publishing, p.problem
FROM weir_internal.stream s
LEFT JOIN weir_internal.publication p USING (stream_id)
CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, weir_internal.tail_cut(s.stream_id)) t
WHERE s.publish <> 'none' AND s.state <> 'deleted';
COMMENT ON VIEW weir.publications IS 'The streams that are published as tables, and how far. weir_upkeep and weir_publish publish what is new.';
COMMENT ON COLUMN weir.publications.format IS 'The format of the table: iceberg.';
COMMENT ON COLUMN weir.publications.metadata_location IS 'The address of the file that describes the table, which engines without a catalogue are given; null: it was not published yet.';
COMMENT ON COLUMN weir.publications.snapshot IS 'The sequence number of the newest snapshot.';
COMMENT ON COLUMN weir.publications.cut IS 'The cut of the stream up to which the newest snapshot has its events.';
COMMENT ON COLUMN weir.publications.published_until IS 'The clock of the stream at that cut, as a time.';
COMMENT ON COLUMN weir.publications.published_at IS 'When the newest snapshot was made; a run that finds nothing new makes none.';
COMMENT ON COLUMN weir.publications.files IS 'How many files of the stream the newest snapshot has.';
COMMENT ON COLUMN weir.publications.behind_events IS 'How many events were appended since.';
COMMENT ON COLUMN weir.publications.behind_for IS 'How long ago the newest snapshot was made, if events were appended since.';
COMMENT ON COLUMN weir.publications.publishing IS 'Whether a run publishes it now.';
COMMENT ON COLUMN weir.publications.problem IS 'Why the last run did not publish it; null if it did.';

-- The catalogue as Iceberg's SQL catalogues (pyiceberg's, and the JDBC catalogue of Java) read it. Nobody can write to a
-- view of several tables, so no other engine commits to a table.
CREATE OR REPLACE VIEW weir.iceberg_tables AS
SELECT 'weir'::varchar(255) AS catalog_name, s.scope::varchar(255) AS table_namespace, s.name::varchar(255) AS table_name,
       (p.root || '/' || p.metadata)::varchar(1000) AS metadata_location,
       (p.root || '/' || p.previous_metadata)::varchar(1000) AS previous_metadata_location, 'TABLE'::varchar(5) AS iceberg_type
FROM weir_internal.publication p JOIN weir_internal.stream s USING (stream_id)
WHERE s.publish = 'iceberg' AND s.state <> 'deleted' AND p.metadata IS NOT NULL;
COMMENT ON VIEW weir.iceberg_tables IS 'The catalogue of Iceberg tables, as SQL catalogues of Iceberg read it: one named weir, with the search path weir.';
COMMENT ON COLUMN weir.iceberg_tables.catalog_name IS 'Always weir.';
COMMENT ON COLUMN weir.iceberg_tables.table_namespace IS 'The scope of the stream.';
COMMENT ON COLUMN weir.iceberg_tables.table_name IS 'The second half of its name.';
COMMENT ON COLUMN weir.iceberg_tables.metadata_location IS 'The address of the file that describes the table now.';
COMMENT ON COLUMN weir.iceberg_tables.previous_metadata_location IS 'That of the one before.';
COMMENT ON COLUMN weir.iceberg_tables.iceberg_type IS 'Always TABLE.';

CREATE OR REPLACE VIEW weir.iceberg_namespace_properties AS
SELECT DISTINCT 'weir'::varchar(255) AS catalog_name, t.table_namespace AS namespace, 'exists'::varchar(255) AS property_key,
       'true'::varchar(1000) AS property_value
FROM weir.iceberg_tables t;
COMMENT ON VIEW weir.iceberg_namespace_properties IS 'The namespaces of the catalogue of Iceberg tables: the scopes that have any.';
COMMENT ON COLUMN weir.iceberg_namespace_properties.catalog_name IS 'Always weir.';
COMMENT ON COLUMN weir.iceberg_namespace_properties.namespace IS 'A scope.';
COMMENT ON COLUMN weir.iceberg_namespace_properties.property_key IS 'Always exists.';
COMMENT ON COLUMN weir.iceberg_namespace_properties.property_value IS 'Always true.';
