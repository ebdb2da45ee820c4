# SPDX-License-Identifier: Apache-2.0
"""What is known of jobs, read without a process for each question: the head's database, beside it,
and one list of all jobs from the controller."""
import collections
import sqlite3
import threading
import time

OPEN = ("running", "waiting")
ALIVE = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING")


class Book:
    """Jobs go by their names: a controller that forgot a job gives its id to another one."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.path = f"file:{cluster.dir}/oomretry/db/oomretry.db?mode=ro"
        self.lock, self.asked_at, self.states = threading.Lock(), 0, None

    def rows(self, sql, *values):
        base = sqlite3.connect(self.path, uri=True, timeout=30)
        base.row_factory = sqlite3.Row
        try:
            return base.execute(sql, values).fetchall()
        finally:
            base.close()

    def lineages(self, name):
        return self.rows("SELECT * FROM lineage WHERE name = ? ORDER BY id", name)

    def attempts(self, name):
        """All attempts of that name, in order."""
        return self.rows("SELECT a.* FROM attempt a JOIN lineage l ON l.id = a.lineage "
                         "WHERE l.name = ? ORDER BY a.lineage, a.number", name)

    def jobs_of(self, lineage):
        return [row["job"] for row in self.rows(
            "SELECT job FROM job WHERE lineage = ? ORDER BY first_ms, job", lineage)]

    def jobs(self, name):
        """{id: (state, reason)}; a task of an array goes by "12_3". None while the controller does
        not answer."""
        with self.lock:
            if time.monotonic() - self.asked_at > 0.4:
                done = self.cluster.run("squeue", "-h", "-r", "-t", "all", "-o", "%j|%i|%T|%r")
                self.states = collections.defaultdict(dict) if done.returncode == 0 else None
                for line in done.stdout.splitlines() if self.states is not None else ():
                    job, number, state, reason = line.split("|", 3)
                    # The first component of a heterogeneous job stands for it.
                    self.states[job][number.removesuffix("+0")] = (state, reason)
                self.asked_at = time.monotonic()
            return None if self.states is None else dict(self.states[name])

    def settled(self, name):
        """It has lineages, and all are over."""
        lineages = self.lineages(name)
        return bool(lineages) and not any(row["state"] in OPEN for row in lineages)

    def is_over(self, name):
        jobs = self.jobs(name)
        return (jobs is not None and not any(state in ALIVE for state, _ in jobs.values()) and
                not any(row["state"] in OPEN for row in self.lineages(name)))
