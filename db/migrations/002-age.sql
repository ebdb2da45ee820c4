-- What nodes report is asked for by job, and forgotten by age.
CREATE INDEX task_exit_by_job ON task_exit (job, at_ms);
CREATE INDEX task_exit_by_time ON task_exit (at_ms);
