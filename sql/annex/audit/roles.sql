-- An audit is of all streams, and the next one does not look again at what it has proven.
REVOKE INSERT, UPDATE, DELETE ON weir_internal.audit, weir_internal.audited_stream, weir_internal.counter_example
FROM weir_team;
-- A counter-example names a stream and a group, and is seen by whoever sees both.
DROP POLICY of_teams ON weir_internal.counter_example;
CREATE POLICY of_teams ON weir_internal.counter_example TO weir_team, weir_reader USING (
    NOT EXISTS (SELECT FROM weir_internal.hidden_stream h WHERE h.stream_id = counter_example.stream_id)
    AND NOT EXISTS (SELECT FROM weir_internal.hidden_group h WHERE h.group_id = counter_example.group_id));
