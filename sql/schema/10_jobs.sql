CREATE TABLE weir_internal.request (
    request_id text NOT NULL,
    operation text NOT NULL,
    object text NOT NULL,
    arguments text NOT NULL,
    result jsonb NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    login name NOT NULL DEFAULT current_user,
    PRIMARY KEY (request_id, operation, object)
);
CREATE INDEX request_by_object ON weir_internal.request (object, ended_at);
COMMENT ON TABLE weir_internal.request IS 'Requests that changed something. A request that is sent again returns its result; with other arguments it is a conflict.';
COMMENT ON COLUMN weir_internal.request.request_id IS 'By default DAG, run, task and map index, without the try number.';
COMMENT ON COLUMN weir_internal.request.operation IS 'create_stream, scale ...';
COMMENT ON COLUMN weir_internal.request.object IS 'The name of the stream or group.';
COMMENT ON COLUMN weir_internal.request.arguments IS 'A hash of the arguments.';
COMMENT ON COLUMN weir_internal.request.result IS 'What the operation returned.';
COMMENT ON COLUMN weir_internal.request.ended_at IS 'When the change was made.';
COMMENT ON COLUMN weir_internal.request.login IS 'The role that asked, whose team sees it in any case.';

CREATE TABLE weir_internal.job_run (
    dag_id text NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    map_index integer NOT NULL,
    try_number integer NOT NULL,
    job text NOT NULL,
    item text NOT NULL DEFAULT '',
    arguments jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('submitted', 'running', 'succeeded', 'failed', 'killed')),
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    progress text,
    report jsonb,
    error text,
    retryable boolean,
    begun boolean NOT NULL DEFAULT true,
    login name NOT NULL DEFAULT current_user,
    approved jsonb,
    started_by text,
    PRIMARY KEY (dag_id, run_id, task_id, map_index, try_number)
) WITH (fillfactor = 70);
CREATE INDEX job_run_by_time ON weir_internal.job_run (started_at);
CREATE INDEX job_run_open ON weir_internal.job_run (started_at) WHERE state <> 'succeeded';
CREATE INDEX job_run_by_job ON weir_internal.job_run (job, started_at);
-- For whether what failed has succeeded since. Arguments are too long for an index.
CREATE INDEX job_run_done ON weir_internal.job_run (job, jsonb_hash(arguments), started_at) WHERE state = 'succeeded';
COMMENT ON TABLE weir_internal.job_run IS 'What each job did: its progress, its report, or the sentence with which it failed. Also the lineage.';
COMMENT ON COLUMN weir_internal.job_run.dag_id IS 'Airflow''s DAG (or "by hand").';
COMMENT ON COLUMN weir_internal.job_run.run_id IS 'Airflow''s run.';
COMMENT ON COLUMN weir_internal.job_run.task_id IS 'Airflow''s task.';
COMMENT ON COLUMN weir_internal.job_run.map_index IS 'Airflow''s map index; -1 for a task that is not mapped.';
COMMENT ON COLUMN weir_internal.job_run.try_number IS 'Airflow''s try.';
COMMENT ON COLUMN weir_internal.job_run.job IS 'The action that it runs, a file of spark_jobs.';
COMMENT ON COLUMN weir_internal.job_run.item IS 'What a mapped task is known by, whatever its index: a hash of its item in its list. Empty for one that is not mapped.';
COMMENT ON COLUMN weir_internal.job_run.arguments IS 'The arguments of the job; never a secret.';
COMMENT ON COLUMN weir_internal.job_run.state IS 'submitted (handed to Spark, which has not started it yet), running, succeeded, failed, or killed (interrupted, and could still say so). A process that could not say so leaves running, with an old updated_at: the view weir.job_runs says killed then.';
COMMENT ON COLUMN weir_internal.job_run.started_at IS 'When it started; while it is submitted, when it was handed to Spark.';
COMMENT ON COLUMN weir_internal.job_run.updated_at IS 'When it last reported, or showed that it is alive: every half minute.';
COMMENT ON COLUMN weir_internal.job_run.progress IS 'The last line that it logged.';
COMMENT ON COLUMN weir_internal.job_run.report IS 'What it did, as returned to Airflow.';
COMMENT ON COLUMN weir_internal.job_run.error IS 'Why it failed, in one sentence.';
COMMENT ON COLUMN weir_internal.job_run.retryable IS 'Whether another try may succeed.';
COMMENT ON COLUMN weir_internal.job_run.approved IS 'The facts of the loss that a person has approved, for the job that was submitted then.';
COMMENT ON COLUMN weir_internal.job_run.started_by IS 'Who started it by hand: the user, the host and the command. Null for a task of Airflow.';
COMMENT ON COLUMN weir_internal.job_run.begun IS 'Whether the job itself began: false if the task of Airflow failed before.';
COMMENT ON COLUMN weir_internal.job_run.login IS 'The role that ran it, whose team sees it in any case.';
