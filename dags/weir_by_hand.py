"""What people trigger. Each DAG opens as a form, and its task submits one PySpark job: the file of
its name in `spark_jobs`, whose page is the DAG's ("Dag Docs")."""

from weir.airflow.dags import by_hand

STREAMS = """create_stream update_stream scale_stream truncate_stream seal_stream delete_stream
    define_adjunct_store update_adjunct_store delete_adjunct_store"""
READER_GROUPS = """create_reader_group update_reader_group reset_reader_group fork_reader_group
    checkpoint_reader_group release_reader_group reader_offline delete_reader_group"""
DATA = "ingest process put_back apply erase back_test"
UPKEEP = "compact verify recover publish"

for job in f"{STREAMS} {READER_GROUPS} {DATA} {UPKEEP}".split():
    globals().update(by_hand(job))
