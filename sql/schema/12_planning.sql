-- Weir keeps no statistics of the stream that a row belongs to, so that Postgres plans every statement for a
-- large stream. With statistics, Postgres assumed one row for a stream that is rare in its sample, and read
-- the whole stream through any index that begins with its number: 50 times slower beside a stream of 31
-- million epochs.
ALTER TABLE weir_internal.stream_schema ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.epoch ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.epoch ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.segment ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.segment ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.segment_tail ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.transaction ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.transaction ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.transaction_input ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.stream_writer ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.data_file ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.data_file ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.time_index ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.time_index ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.stream_cut ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.stream_cut ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.stream_history ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.group_history ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.retention_decision ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.retention_decision ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.scale_decision ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.scale_decision ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.scale_evaluation ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.scale_measurement ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.hot_key ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.capture_queue ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.retention_queue ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_group_stream ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_group_segment ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_group_pin ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.garbage ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.batch_input ALTER COLUMN stream_id SET STATISTICS 0;
-- Nor of the group's name.
ALTER TABLE weir_internal.reader_batch ALTER COLUMN group_name SET STATISTICS 0;
ALTER TABLE weir_internal.parquet_output ALTER COLUMN group_name SET STATISTICS 0;
-- Nor of values that may have to be forgotten: a sample of them would outlive that.
ALTER TABLE weir_internal.hot_key ALTER COLUMN routing_key SET STATISTICS 0;
ALTER TABLE weir_internal.request ALTER COLUMN result SET STATISTICS 0;
ALTER TABLE weir_internal.job_run ALTER COLUMN arguments SET STATISTICS 0;
ALTER TABLE weir_internal.job_run ALTER COLUMN progress SET STATISTICS 0;
ALTER TABLE weir_internal.job_run ALTER COLUMN report SET STATISTICS 0;
ALTER TABLE weir_internal.job_run ALTER COLUMN error SET STATISTICS 0;

-- Without a key, a publication FOR ALL TABLES would forbid to delete from them.
ALTER TABLE weir_internal.capture_queue REPLICA IDENTITY FULL;
ALTER TABLE weir_internal.retention_queue REPLICA IDENTITY FULL;
ALTER TABLE weir_internal.batch_input REPLICA IDENTITY FULL;
