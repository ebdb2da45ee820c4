-- One row a version of a policy; bodies never change. The active version of a name is the one that
-- new lineages begin with.
CREATE TABLE policy_version (
    id          INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    author      TEXT    NOT NULL,
    message     TEXT    NOT NULL,
    created_ms  INTEGER NOT NULL,
    UNIQUE (name, version)
) STRICT;

CREATE TABLE policy (
    name        TEXT    PRIMARY KEY,
    version     INTEGER NOT NULL,
    enabled     INTEGER NOT NULL DEFAULT 1,
    FOREIGN KEY (name, version) REFERENCES policy_version (name, version)
) STRICT;

-- All attempts that come from one submission by a user.
CREATE TABLE lineage (
    id          INTEGER PRIMARY KEY,
    scheduler   TEXT    NOT NULL,               -- slurm, ray, none
    cluster     TEXT    NOT NULL,
    uid         INTEGER NOT NULL,
    user        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    state       TEXT    NOT NULL,               -- running, waiting, held, completed, failed, stopped, cancelled
    reason      TEXT    NOT NULL DEFAULT '',
    advice      TEXT    NOT NULL DEFAULT '',
    framework   TEXT    NOT NULL DEFAULT '',
    policies    TEXT    NOT NULL,               -- {"relax":3,...}: the versions that it began with
    options     TEXT    NOT NULL,
    shape       TEXT    NOT NULL DEFAULT '',    -- what similar submissions share
    created_ms  INTEGER NOT NULL,
    updated_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX lineage_by_time ON lineage (updated_ms);
CREATE INDEX lineage_by_user ON lineage (uid, updated_ms);
CREATE INDEX lineage_by_shape ON lineage (shape, updated_ms);

-- The ids under which the scheduler knew the lineage.
CREATE TABLE job (
    lineage     INTEGER NOT NULL REFERENCES lineage (id),
    scheduler   TEXT    NOT NULL,
    cluster     TEXT    NOT NULL,
    job         TEXT    NOT NULL,
    first_ms    INTEGER NOT NULL,
    PRIMARY KEY (scheduler, cluster, job, lineage)
) STRICT;
CREATE INDEX job_by_id ON job (job);

-- One run of the command. A row in state intended is written in the transaction that decides; it
-- becomes running when that attempt reports itself. UNIQUE makes two retries of one failure
-- impossible.
CREATE TABLE attempt (
    id          INTEGER PRIMARY KEY,
    lineage     INTEGER NOT NULL REFERENCES lineage (id),
    number      INTEGER NOT NULL,
    state       TEXT    NOT NULL,               -- intended, running, ended
    job         TEXT,
    restart     INTEGER NOT NULL DEFAULT 0,
    token       TEXT,                           -- of the oomrun that runs it
    node        TEXT,
    mode        TEXT    NOT NULL,               -- first, inplace, requeue, resubmit, scheduler
    decision    TEXT,                           -- the decision that led here; NULL for the first
    edits       TEXT    NOT NULL DEFAULT '[]',  -- relative to the attempt before
    total_edits TEXT    NOT NULL DEFAULT '[]',  -- relative to what the user submitted
    diff        TEXT,
    applied     TEXT    NOT NULL DEFAULT 'unknown', -- yes, no, unknown
    proof       TEXT,
    acted       TEXT,                           -- what has been done about starting it
    claimed_by  TEXT,                           -- who finishes what its supervisor left
    claimed_ms  INTEGER,
    started_ms  INTEGER,
    ended_ms    INTEGER,
    exit_code   INTEGER,
    signal      INTEGER,
    sched_state TEXT,
    outcome     TEXT,                           -- completed, oom, rejected (the change), failed, cancelled, lost
    incident    TEXT,
    values_json TEXT,
    gpus        INTEGER NOT NULL DEFAULT 0,
    UNIQUE (lineage, number)
) STRICT;
CREATE INDEX attempt_by_state ON attempt (state);

-- Bounded, redacted: so that a later question needs no log file.
CREATE TABLE evidence (
    attempt     INTEGER NOT NULL REFERENCES attempt (id),
    kind        TEXT    NOT NULL,               -- windows, explain, exit
    body        TEXT    NOT NULL,
    PRIMARY KEY (attempt, kind)
) STRICT;

-- What nodes reported: task exits with cgroup counters. Keyed so that a repeated report is one row.
CREATE TABLE task_exit (
    cluster     TEXT    NOT NULL,
    job         TEXT    NOT NULL,
    restart     INTEGER NOT NULL,
    step        TEXT    NOT NULL,
    node        TEXT    NOT NULL,
    task        INTEGER NOT NULL,
    uid         INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    oom_kills   INTEGER NOT NULL,
    peak_bytes  INTEGER NOT NULL,
    limit_bytes INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    PRIMARY KEY (cluster, job, restart, step, node, task)
) STRICT;

CREATE TABLE audit (
    id          INTEGER PRIMARY KEY,
    at_ms       INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    verb        TEXT    NOT NULL,
    object      TEXT    NOT NULL,
    detail      TEXT    NOT NULL
) STRICT;
