#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kills oomrun, oomagent, slurmd or slurmctld once in the life of each of many jobs that run out of
memory, and looks afterwards: no lineage lost, none retried twice for one failure, the database
consistent.

    tests/cluster/chaos.py [--runs 300] [--seed N]      (needs root; about 4 s a run)

Half of the kills come at a uniformly random moment of a run's life, the others at a random moment
after its submission, its start, its failure or the decision. A run whose kill hits a daemon of all
is felt by its neighbours too. What became of each run is judged by chaos_judge.py."""
import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import chaos_judge  # noqa: E402
from conftest import OWNER, Cluster  # noqa: E402
from kinds import OOM_MESSAGE  # noqa: E402

AT_ONCE = 8
SETTLE_S = 150
AIMS = ("life", "life", "life", "life", "submitted", "start", "oom", "decided")
WITHIN_S = {"submitted": 1.5, "start": 2, "oom": 0.4, "decided": 2.5}

TRAINER = f"""#!/bin/bash
case "$*" in
*recompute-granularity*) sleep SLEEP_2; echo trained; exit 0 ;;
esac
sleep SLEEP_1
cat <<'END'
{OOM_MESSAGE}END
echo "oom $EPOCHREALTIME" >> WORK/events
exit 1
"""
SCRIPT = """#!/bin/bash
export PATH=WORK/bin:$PATH
echo "start $EPOCHREALTIME $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} ${OOMRETRY_ATTEMPT:-0}" >> WORK/events
python3 -m relax.entrypoints.train --use-dynamic-batch-size --max-tokens-per-gpu 8192
code=$?
echo "end $EPOCHREALTIME $code" >> WORK/events
exit $code
"""


class Run:
    """One job, the kill that it gets, and what it left."""

    def __init__(self, number, home, seed):
        dice = random.Random(f"{seed}.{number}")
        self.number, self.home, self.dice = number, home, dice
        self.mode = dice.choice(["auto", "auto", "requeue", "requeue", "resubmit", "no-requeue"])
        self.victim = dice.choices(["oomrun", "oomagent", "slurmd", "slurmctld"], [3, 3, 3, 2])[0]
        # A controller that is killed forgets what it was told in the last five seconds.
        self.saved = dice.random() < 0.75
        self.aim = dice.choice(AIMS)
        sleeps = dice.uniform(0, 3), dice.uniform(0, 2)
        self.sleeps = {f"SLEEP_{i + 1}": f"{sleep:.2f}" for i, sleep in enumerate(sleeps)}
        overhead_s = {"auto": 1.5, "requeue": 4}.get(self.mode, 3)
        self.delay_s = dice.uniform(0, WITHIN_S.get(self.aim, overhead_s + sum(sleeps)))
        self.work = self.job = self.killed_at = self.submitted_at = None

    def write(self, name, text):
        for key, value in {**self.sleeps, "WORK": str(self.work)}.items():
            text = text.replace(key, value)
        path = self.work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def submit(self, cluster):
        """The controller may be down. A submission whose answer was lost may have got through: each
        one gets a directory of its own."""
        while True:
            self.work = Path(tempfile.mkdtemp(prefix=f"run{self.number}-", dir=self.home))
            os.chown(self.work, OWNER.pw_uid, OWNER.pw_gid)
            self.work.chmod(0o755)
            self.write("bin/python3", TRAINER)
            options = ["--no-requeue"] if self.mode == "no-requeue" else [f"--oom-mode={self.mode}"]
            try:
                self.job = cluster.sbatch(self.work, "--oom-retry=relax", "--mem=60", "-t", "20",
                                          "--open-mode=append", "-J", self.work.name, *options,
                                          self.write("job.sh", SCRIPT))
                self.submitted_at = time.time()
                return
            except AssertionError:
                time.sleep(0.5)

    def events(self, kind=None):
        """[[kind, time, words...]]"""
        path = self.work / "events"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [[line[0], float(line[1]), *line[2:]] for line in lines
                if kind is None or line[0] == kind]

    def moment(self):
        """Where in the run's life its kill came."""
        passed = [event for event in self.events() if event[1] < self.killed_at]
        if not any(event[0] == "start" for event in passed):
            return "before the first start"
        kind, at = passed[-1][0], passed[-1][1]
        last = sum(event[0] == "start" for event in passed)
        if kind == "start":
            return "during the first attempt" if last == 1 else "during a later attempt"
        if passed[-1][2:] == ["0"]:
            return "after the end"
        return "at the decision" if self.killed_at - at < 0.3 else "before the restart"


class Killer:
    """Kills processes of a cluster; daemons come back after a moment."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.one_restart, self.submitting = threading.Lock(), threading.Lock()
        self.down = collections.defaultdict(threading.Lock)

    def supervisors(self, run):
        """Of this run: the job's own, and those in the place of one that was lost."""
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or (entry / "comm").read_text() != "oomrun\n":
                    continue
                environment = (entry / "environ").read_bytes().split(b"\0")
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            mine = f"SLURM_CONF={self.cluster.conf}".encode() in environment
            own = f"SLURM_SUBMIT_DIR={run.work}".encode() in environment
            instead = len(words) > 2 and words[1] == b"--after" and (
                words[2].endswith(f".{run.job.id}".encode()))
            if mine and (own or instead):
                yield int(entry.name)

    def kill_supervisor(self, run, over):
        while not (pids := list(self.supervisors(run))):
            if over():
                return False
            time.sleep(0.02)
        run.killed_at = time.time()
        try:
            os.kill(run.dice.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            pass
        return True

    def kill_controller(self, run):
        """Most often when it has saved all jobs: else it would lose most of what runs."""
        with self.submitting if run.saved else contextlib.nullcontext():
            time.sleep(5.5 if run.saved else 0)
            self.kill_daemon(run, "slurmctld")

    def kill_daemon(self, run, name):
        with self.down[name]:
            pid = self.cluster.record["daemons"][name]["pid"]
            run.killed_at = time.time()
            (os.killpg if name == "oomagent" else os.kill)(pid, signal.SIGKILL)
            time.sleep(run.dice.uniform(0, 2))
            with self.one_restart:
                self.cluster.devcluster("restart", name)

    def node_of(self, run):
        nodes = [name for name in self.cluster.record["daemons"] if name.startswith("slurmd.")]
        node = run.job.record().get("BatchHost", "")
        return f"slurmd.{node}" if f"slurmd.{node}" in nodes else run.dice.choice(nodes)


class Campaign:
    def __init__(self, cluster, home, options):
        self.cluster, self.home, self.options = cluster, home, options
        self.killer = Killer(cluster)
        self.book = chaos_judge.ChaosBook(cluster)
        self.queue = iter(range(options.runs))
        self.lock = threading.Lock()
        self.done, self.over = [], threading.Event()

    def aimed(self, run):
        """Waits for the moment of the kill; False when the run is over before it."""
        marks = {"life": lambda: True, "submitted": lambda: True,
                 "start": lambda: run.events("start"), "oom": lambda: run.events("oom"),
                 "decided": lambda: len(self.book.attempts(run.work.name)) > 1}
        deadline = time.monotonic() + SETTLE_S
        while not marks[run.aim]():
            if self.book.is_over(run.work.name) or time.monotonic() > deadline:
                return False
            time.sleep(0.03)
        time.sleep(run.delay_s)
        return True

    def play(self, run):
        with self.killer.submitting:
            run.submit(self.cluster)
        # A run that is over already is killed after its end: that must change nothing either.
        self.aimed(run)
        if run.victim == "oomrun":
            self.killer.kill_supervisor(run, lambda: self.book.is_over(run.work.name))
        elif run.victim == "slurmctld":
            self.killer.kill_controller(run)
        else:
            name = self.killer.node_of(run) if run.victim == "slurmd" else run.victim
            self.killer.kill_daemon(run, name)
        deadline = time.monotonic() + SETTLE_S
        while not self.book.is_over(run.work.name) and time.monotonic() < deadline:
            # What Slurm has forgotten the end of keeps running for it: nothing to wait for.
            if self.book.settled(run.work.name):
                deadline = min(deadline, time.monotonic() + 20)
            time.sleep(0.3)

    def is_settled(self, run):
        """Over, and known to the head if anything of it has run."""
        name = run.work.name
        return self.book.is_over(name) and (self.book.settled(name) or not run.events("start"))

    def worker(self):
        while True:
            with self.lock:
                number = next(self.queue, None)
            if number is None:
                return
            run = Run(number, self.home, self.options.seed)
            self.play(run)
            with self.lock:
                self.done.append(run)
                if len(self.done) % 20 == 0:
                    print(f"{len(self.done)} runs over", flush=True)

    def staff(self):
        """What a site's staff does when Slurm drains a node or holds a job whose launch failed, as
        it does when slurmd dies at the wrong moment."""
        while not self.over.wait(4):
            for name in self.cluster.record["nodes"]:
                self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", root=True)
            held = self.cluster.run("squeue", "-h", "-t", "PD", "-o", "%i|%r").stdout
            for line in held.splitlines():
                if "launch failed" in line or "launch_failed" in line:
                    self.cluster.run("scontrol", "release", line.split("|")[0], root=True)

    def run(self):
        workers = [threading.Thread(target=self.worker, daemon=True) for _ in range(AT_ONCE)]
        staff = threading.Thread(target=self.staff, daemon=True)
        for thread in [*workers, staff]:
            thread.start()
        for thread in workers:
            thread.join()
        self.over.set()
        staff.join()


def table(title, counts):
    print(title)
    for name, count in sorted(counts.items()):
        print(f"  {count:4}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.runs} runs, {AT_ONCE} at once", flush=True)
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="oomretry-chaos-"))
    home.chmod(0o755)
    # A controller that was killed keeps room for jobs whose end it has forgotten.
    cluster = Cluster(home / "c", "--cpus", "512", "--memory", "40000", "--memory", "40000",
                      "--agent-conf", "attempts_per_user_day: 100000",
                      "--agent-conf", "cooldown_failures: 0", "--conf", "MinJobAge=7200")
    cluster.start()
    complaints = ["it did not come to an end"]
    try:
        campaign = Campaign(cluster, home, options)
        campaign.run()
        # What is open has its time: reports that found no head are handed in when it is back.
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline and not all(map(campaign.is_settled, campaign.done)):
            time.sleep(1)
        judge = chaos_judge.Judge(cluster, campaign.book)
        fates = collections.Counter()
        complaints = []
        for run in sorted(campaign.done, key=lambda run: run.number):
            complaint, fate = judge.of(run)
            fates[fate] += 1
            if complaint:
                complaints.append(f"run {run.number}, job {run.job.id} ({run.mode}; {run.victim} "
                                  f"killed {run.killed_at and run.moment()}; {run.work}): {complaint}")
        complaints += campaign.book.complaints()
        killed = [run for run in campaign.done if run.killed_at]
        table("kills by victim", collections.Counter(run.victim for run in killed))
        table("kills by moment", collections.Counter(run.moment() for run in killed))
        table("what became of the runs", fates)
        table("in the database", campaign.book.totals())
        print(f"seed {options.seed}: {len(campaign.done)} runs, {len(killed)} kills, "
              f"{time.monotonic() - began:.0f} s")
        print("\n".join(complaints) or "lost: 0; retried twice: 0; database consistent")
    finally:
        if not complaints:
            cluster.stop()
            shutil.rmtree(home, ignore_errors=True)
        else:
            cluster.devcluster("stop", "--keep")
            print(f"kept for a look: {home}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
