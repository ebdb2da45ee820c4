# SPDX-License-Identifier: Apache-2.0
"""What chaos.py must find after the kills: in the head's database, and run by run.

Slurm itself loses jobs when its daemons are killed, with and without oomretry. That is never
assumed: it must stand in slurmctld's own log (SlurmLog)."""
import collections
import datetime
import re

from book import ALIVE, OPEN, Book

class ChaosBook(Book):
    def complaints(self):
        """What must hold whatever was killed."""
        found = []
        if (verdict := self.rows("PRAGMA integrity_check")[0][0]) != "ok":
            found.append(f"database: {verdict}")
        if self.rows("PRAGMA foreign_key_check"):
            found.append("database: rows without their parents")
        for what, sql in {
                "lineages are open": "SELECT id FROM lineage WHERE state IN ('running', 'waiting')",
                "lineages that are over have an open attempt":
                    "SELECT l.id FROM lineage l JOIN attempt a ON a.lineage = l.id "
                    "WHERE l.state NOT IN ('running', 'waiting') AND a.state <> 'ended'",
                "lineages have a gap in their attempts":
                    "SELECT lineage AS id FROM attempt GROUP BY lineage "
                    "HAVING count(*) <> max(number) OR min(number) <> 1",
                "attempts were decided without a failure before them":
                    "SELECT a.id FROM attempt a JOIN attempt b ON b.lineage = a.lineage "
                    "AND b.number = a.number - 1 WHERE a.decision IS NOT NULL "
                    "AND coalesce(b.outcome, '') <> 'oom'",
                "ended attempts have no outcome":
                    "SELECT id FROM attempt WHERE state = 'ended' AND outcome IS NULL",
                "attempts ended before they started":
                    "SELECT id FROM attempt WHERE ended_ms < started_ms",
                "completed lineages did not end with a completed attempt":
                    "SELECT l.id FROM lineage l JOIN attempt a ON a.lineage = l.id AND a.number = "
                    "(SELECT max(number) FROM attempt WHERE lineage = l.id) "
                    "WHERE l.state = 'completed' AND a.outcome <> 'completed'"}.items():
            if rows := self.rows(sql):
                found.append(f"database: {what}: {[row['id'] for row in rows][:20]}")
        return found

    def totals(self):
        counts = collections.Counter()
        for row in self.rows("SELECT state, count(*) AS n FROM lineage GROUP BY state"):
            counts[f"lineages {row['state']}"] = row["n"]
        for row in self.rows("SELECT mode, count(*) AS n FROM attempt GROUP BY mode"):
            counts[f"attempts started {row['mode']}"] = row["n"]
        counts["claims by the node's agent"] = self.rows(
            "SELECT count(*) FROM attempt WHERE claimed_by IS NOT NULL")[0][0]
        return counts


class SlurmLog:
    """What slurmctld itself says about the jobs that it lost or started again."""

    LOSSES = {
        "its batch step was missing on the node": r"Batch JobId={job} missing from batch node",
        "its node was taken for failed": r"(Killing|requeue) JobId={job} on failed node|"
                                         r"requeue job JobId={job} due to failure of node",
        "the node could not launch it": r"JobId={job}.*(launch failure|launch failed)|"
                                        r"[Rr]equeue.*JobId={job}\b.*launch",
        "a step of it is unknown to the controller": r"Orphan.*(JobId|StepId)={job}\b|"
                                                     r"Killing orphan.*JobId={job}\b",
        "it ran on a node while the controller had it pending": r"Registered PENDING JobId={job}\b",
    }

    def __init__(self, cluster):
        self.text = cluster.log("slurmctld.log")
        self.nodes = "".join(cluster.log(f"{name}.log") for name in cluster.record["nodes"])
        # Each start of the controller lists the jobs that it found in its saved state.
        self.starts = []
        for line in self.text.splitlines():
            if match := re.match(r"\[(\S+)\] .*slurmctld version .* started", line):
                at = datetime.datetime.fromisoformat(match[1]).timestamp()
                self.starts.append((at, set()))
            elif self.starts and (match := re.search(r"Recovered JobId=(\d+)", line)):
                self.starts[-1][1].add(match[1])

    def loss(self, job, submitted_at, states):
        """Words, or None. The next start after the submission did not know the job: a killed
        controller forgets what it has not saved yet."""
        later = [recovered for at, recovered in self.starts if at > submitted_at]
        if later and job not in later[0]:
            return "the controller was killed before it had saved the job"
        if words := self.forgotten(job, states) or self.never_executed(job):
            return words
        for words, pattern in self.LOSSES.items():
            if re.search(pattern.replace("{job}", job), self.text):
                return words
        return None


    def forgotten(self, job, states):
        """A controller that was killed goes on from what it had saved last. `states` are those that
        it shows in the end."""
        state, killed_in, last_exit = None, None, None
        for line in self.text.splitlines():
            if "slurmctld version" in line:
                killed_in = state
            elif not re.search(rf"JobId={job}\b", line):
                continue
            elif re.search(r"(Started|Allocate) JobId=", line):
                if killed_in in ("started", "done"):
                    return "the controller forgot that it had started the job"
                state, killed_in = "started", None
            elif "Requeuing" in line:
                state, killed_in = "requeued", None
            elif "_job_complete" in line and line.endswith("done"):
                state, killed_in = "done", None
            elif "_job_complete" in line:
                last_exit = line.split(f"JobId={job} ")[1]
            elif "in completing state" in line and killed_in == "started":
                return "the controller forgot that it had started the job"
            elif "Recovered" in line and "StepId" in line and killed_in in ("done", "requeued"):
                return f"the controller forgot that the job was {killed_in}"
        shown = states.get(job, ("", ""))[0]
        if killed_in in ("started", "requeued"):
            return f"the controller forgot that the job was {killed_in}"
        if state == "done" and (shown in ALIVE or (last_exit == "WEXITSTATUS 0" and
                                                   shown == "FAILED")):
            return "the controller forgot that the job was done"
        return None

    def never_executed(self, job):
        """slurmd was killed between taking the job and starting its slurmstepd, or lost its script."""
        if re.search(rf"\[{job}\.batch\] error: execve\(\): .*No such file", self.nodes):
            return "its script was gone from the node before it was executed"
        launched = len(re.findall(rf"Launching batch job {job} ", self.nodes))
        if launched and f"[{job}.batch]" not in self.nodes:
            return "slurmd was killed while it launched the job"
        return None


class Judge:
    def __init__(self, cluster, book):
        self.book, self.log = book, SlurmLog(cluster)

    def of(self, run):
        """(complaint or None, what became of the run)."""
        name = run.work.name
        lineages = self.book.lineages(name)
        born = {run.job.id: run.submitted_at}
        for row in self.book.rows("SELECT j.job, j.first_ms FROM job j JOIN lineage l "
                                  "ON l.id = j.lineage WHERE l.name = ?", name):
            born.setdefault(row["job"], row["first_ms"] / 1000)
        states = self.book.jobs(name) or {}
        losses = [self.log.loss(number, at, states) for number, at in born.items()]
        loss = next(filter(None, losses), None)
        # Slurm goes on calling a job RUNNING whose end it has forgotten.
        open_lineages = [row for row in lineages if row["state"] in OPEN]
        if not self.book.is_over(name) and (open_lineages or not loss):
            return f"not over: {[dict(row) for row in lineages]}, {run.job.record()}", "open"
        if len(lineages) != 1:
            return self.without_one(run, lineages, loss)
        lineage = lineages[0]
        attempts = self.book.rows("SELECT * FROM attempt WHERE lineage = ? ORDER BY number",
                                  lineage["id"])
        if complaint := self.twice(run, attempts, loss):
            return complaint, "twice"
        return self.ended(run, lineage, attempts, loss)

    def without_one(self, run, lineages, loss):
        if loss:
            return None, f"Slurm's own loss: {loss}"
        if not lineages and not run.events("start") and run.job.record().get("JobName") != run.work.name:
            return None, "Slurm's own loss: the controller forgot the job and gave its id to another one"
        if not lineages and not run.events("start") and run.victim == "oomrun":
            return None, "failed, as its batch script was killed before it began"
        if not lineages and run.victim == "oomrun" and run.events("start")[0][4] == "0":
            return None, "ran plainly, as oomrun was killed while the launcher tried it"
        if not lineages and not run.events("start"):
            return f"never started: {run.job.record()}", "lost"
        return f"{len(lineages)} lineages for one job", "lost"

    def failures(self, run):
        return sum(path.read_text(errors="replace").count("torch.OutOfMemoryError:")
                   for path in run.work.glob("*.out"))

    def twice(self, run, attempts, loss):
        starts = collections.Counter(event[4] for event in run.events("start"))
        for number, count in starts.items():
            if count > 1 and not loss:
                return f"attempt {number} was started {count} times"
        if len(run.events("start")) > len(attempts) and not loss:
            return f"{len(run.events('start'))} starts for {len(attempts)} attempts"
        decided = sum(attempt["decision"] is not None for attempt in attempts)
        if decided > self.failures(run):
            return f"{decided} retries for {self.failures(run)} failures"
        if any(attempt["mode"] == "scheduler" for attempt in attempts) and not loss:
            return "started again without a decision, and not by Slurm"
        return None

    def ended(self, run, lineage, attempts, loss):
        state, reason = lineage["state"], lineage["reason"]
        jobs = self.book.jobs(run.work.name)
        final = ", ".join(f"{job} {jobs[job][0]}" for job in sorted(jobs, key=int))
        trained = any("trained" in path.read_text(errors="replace") for path in run.work.glob("*.out"))
        retried = sum(attempt["decision"] is not None for attempt in attempts)
        if state == "completed":
            if (final.endswith("COMPLETED") and trained) or loss:
                return None, "completed"
            ends = [event[1] for event in run.events("end")]
            if trained and run.victim == "oomrun" and run.killed_at > ends[-1]:
                return None, "completed, and its batch script was killed after the end"
            return f"completed, but the jobs are {final}", "lost"
        if loss:
            return None, f"Slurm's own loss: {loss}"
        # Killed in the middle of an attempt that had not failed: as a batch script that is killed.
        # What it started may live a second longer, and still run out.
        if state == "failed" and run.victim == "oomrun" and retried >= sum(
                event[1] < run.killed_at for event in run.events("oom")):
            return None, "failed, as its batch script was killed before it ran out"
        return f"{state}: {reason}; jobs {final}", "lost"
