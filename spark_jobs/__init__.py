"""One file per job: arguments, library calls, a report. Submitted by weir.airflow's operator."""
