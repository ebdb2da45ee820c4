#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kills oomrun, oomagent, slurmd or slurmctld at random moments while jobs run out of memory, and
looks afterwards: no lineage lost, none retried twice for one failure, the database consistent.

    tests/cluster/chaos.py [--runs 300] [--seed N]      (needs root; about 2 s a run)"""
import argparse
import collections
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import kinds  # noqa: E402
from conftest import OWNER, Cluster, Job  # noqa: E402

AT_ONCE = 6
SETTLE_S = 120


def operate(cluster):
    """What a site's staff does when Slurm drains a node or holds a job whose launch failed, as it
    does when slurmd dies at the wrong moment."""
    for name in cluster.record["nodes"]:
        cluster.run("scontrol", "update", f"nodename={name}", "state=resume", root=True)
    for line in cluster.run("squeue", "-h", "-t", "PD", "-o", "%i %r").stdout.splitlines():
        if "held" in line:
            cluster.run("scontrol", "release", line.split()[0], root=True)


class Chaos(threading.Thread):
    """One kill after the other until it is told to stop."""

    def __init__(self, cluster, dice):
        super().__init__(daemon=True)
        self.cluster, self.dice = cluster, dice
        self.over, self.kills = threading.Event(), collections.Counter()

    def supervisors(self):
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "comm").read_text() == "oomrun\n":
                    conf = f"SLURM_CONF={self.cluster.conf}".encode()
                    if conf in (entry / "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)
            except OSError:
                continue

    def strike(self):
        daemons = list(self.cluster.record["daemons"])
        victim = self.dice.choice(["oomrun", "oomagent", "slurmctld",
                                   self.dice.choice([d for d in daemons if "slurmd." in d])])
        self.kills[victim.split(".")[0]] += 1
        if victim == "oomrun":
            for pid in self.dice.sample(alive := list(self.supervisors()), min(1, len(alive))):
                os.kill(pid, signal.SIGKILL)
            return
        pid = self.cluster.record["daemons"][victim]["pid"]
        (os.killpg if victim == "oomagent" else os.kill)(pid, signal.SIGKILL)
        time.sleep(self.dice.uniform(0, 2))
        self.cluster.devcluster("restart", victim)

    def run(self):
        while not self.over.wait(self.dice.uniform(1, 8)):
            self.strike()


def launch(cluster, home, dice):
    """Submits one job; the controller may be down."""
    while True:
        # A submission whose answer was lost may have got through: it gets a directory of its own.
        work = Path(tempfile.mkdtemp(prefix="w", dir=home))
        os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
        work.chmod(0o755)

        def script(text, name="job.sh", work=work):
            if name == "bin/python3":
                text = text.replace("tokens=0", f"tokens=0; sleep {dice.uniform(0, 1.5):.2f}", 1)
            (work / name).write_text(text)
            (work / name).chmod(0o755)
            return work / name
        try:
            job, _ = kinds.submit(cluster, work, script, "plain", "gpu", dice.choice(
                ["auto", "auto", "requeue"]))
            return work, job
        except AssertionError:
            time.sleep(0.5)


def ended(cluster, job):
    try:
        return kinds.is_over(cluster, job)
    except (KeyError, ValueError):
        return None  # the controller or the head is down


def judge(cluster, work, job):
    """A complaint, or None; and how the lineage ended."""
    deadline = time.monotonic() + SETTLE_S
    while not (story := ended(cluster, job)):
        operate(cluster)
        if time.monotonic() > deadline:
            story = kinds.story_of(cluster, job)
            if not story and not kinds.runs(work):
                return None, "never started"
            return f"not over: {story and story['lineage']['state']}, {job.record()}", "open"
        time.sleep(0.5)
    state = story["lineage"]["state"]
    begun = [attempt for attempt in story["attempts"] if attempt["state"] != "intended"]
    starts = len(kinds.runs(work))
    if starts > len(begun):
        return f"{starts} starts for {len(begun)} attempts", state
    failures = job.output().count("torch.OutOfMemoryError:")
    retries = sum(attempt["mode"] in ("inplace", "requeue", "resubmit") for attempt in begun)
    if retries > failures:
        return f"{retries} retries for {failures} failures", state
    # A controller that is killed forgets what it has not saved: its loss, noticed and named.
    if "the scheduler lost this job" in (story["lineage"]["reason"] or ""):
        return None, "lost by Slurm"
    if state not in ("completed", "failed", "cancelled"):
        return f"{state}: {story['lineage']['reason']}", state
    final = Job(cluster, story["lineage"]["jobs"][-1], "").state
    if (state == "completed") != (final == "COMPLETED"):
        return f"lineage {state}, job {final}", state
    if failures and state == "failed" and not retries:
        return f"failed for want of memory and not retried: {story['lineage']['reason']}", state
    return None, state


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    dice = random.Random(options.seed)
    home = Path(tempfile.mkdtemp(prefix="oomretry-chaos-"))
    home.chmod(0o755)
    cluster = Cluster(home / "c", "--agent-conf", "attempts_per_user_day: 100000",
                      "--agent-conf", "cooldown_failures: 0")
    cluster.start()
    outcomes, complaints = collections.Counter(), []
    chaos = Chaos(cluster, random.Random(options.seed + 1))
    try:
        chaos.start()
        waiting = []
        for number in range(options.runs):
            waiting.append(launch(cluster, home, dice))
            # What the agent finds only after a while does not hold up the others.
            until = time.monotonic() + 15
            while (sum(not ended(cluster, job) for _, job in waiting[-AT_ONCE:]) >= AT_ONCE and
                   time.monotonic() < until):
                time.sleep(0.5)
            if number % 10 == 9:
                operate(cluster)
                print(f"{number + 1} started, kills {dict(chaos.kills)}", flush=True)
        chaos.over.set()
        chaos.join()
        for name in cluster.record["daemons"]:
            if name != "munged":
                cluster.devcluster("restart", name)
        for work, job in waiting:
            complaint, state = judge(cluster, work, job)
            outcomes[state] += 1
            if complaint:
                complaints.append(f"job {job.id} ({work}): {complaint}")
        base = sqlite3.connect(f"file:{cluster.dir}/oomretry/db/oomretry.db?mode=ro", uri=True)
        if (verdict := base.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            complaints.append(f"database: {verdict}")
        if base.execute("PRAGMA foreign_key_check").fetchall():
            complaints.append("database: rows without their parents")
        print(f"seed {options.seed}: {dict(outcomes)}; kills {dict(chaos.kills)}")
        print("\n".join(complaints) or "no lineage lost, none retried twice, database consistent")
    finally:
        chaos.over.set()
        chaos.join()
        if not complaints:
            cluster.stop()
            shutil.rmtree(home, ignore_errors=True)
        else:
            cluster.devcluster("stop", "--keep")
            print(f"kept for a look: {home}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
