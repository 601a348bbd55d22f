ALTER TABLE weir.job_run DROP CONSTRAINT job_run_state_check;
ALTER TABLE weir.job_run ADD CONSTRAINT job_run_state_check
    CHECK (state IN ('submitted', 'running', 'succeeded', 'failed'));
COMMENT ON COLUMN weir.job_run.state IS 'submitted (handed to Spark, which has not started it yet), running, succeeded or failed; one that was killed stays as it was.';
