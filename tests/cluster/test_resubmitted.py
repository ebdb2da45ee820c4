# SPDX-License-Identifier: Apache-2.0
"""A job that is submitted again is the job that was submitted: what stood on sbatch's command line
and in its variables, limits, environment, the options of other plugins."""
import os
import re
import resource
import subprocess
import time
from pathlib import Path

import pytest

from conftest import OWNER, Job, wait_for
from kinds import is_over, runs, write_job

# What differs between any two jobs.
OWN = re.compile(r"(?!TimeLimit|TimeMin)\w*Time|JobId|HetJobId(Set)?|JobState|Reason|(Derived)?ExitCode|Priority|"
                 r"AllocNode:Sid|NodeList|BatchHost|Nodes|CPU_IDs|LastSchedEval|Scheduler|Command|Comment|Std(Out|Err)|"
                 r"MinMemory(CPU|Node)")
OWN_VARIABLES = re.compile(r"SLURM(D|_JOB|_TASK|_TOPOLOGY)?_?(ID|_?NODENAME|ADDR|_?NODELIST|PID)|SLURM_JOBID|"
                           r"HOSTNAME|OOMRETRY_ATTEMPT|_")
# Tells the job what its options were.
OTHER_PLUGIN = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <slurm/spank.h>
SPANK_PLUGIN(other, 1)
static char image[80], flag[80];
static int seen(int value, const char *argument, int remote)
{
    (void)remote;
    snprintf(value == 1 ? image : flag, 80, "%s", value == 1 ? argument : "given");
    return 0;
}
int slurm_spank_init(spank_t sp, int count, char **arguments)
{
    struct spank_option options[] = {{"other-image", "IMAGE", "an image", 1, 1, seen},
                                     {"other-flag", NULL, "a flag", 0, 2, seen}};
    (void)count, (void)arguments;
    spank_option_register(sp, &options[0]);
    spank_option_register(sp, &options[1]);
    return 0;
}
int slurm_spank_user_init(spank_t sp, int count, char **arguments)
{
    (void)count, (void)arguments;
    spank_setenv(sp, "OTHER_IMAGE", image, 1);
    spank_setenv(sp, "OTHER_FLAG", flag, 1);
    return 0;
}
"""


def twice(cluster, work, script, *options, env=None):
    """The records of a job and of the one that was submitted in its place."""
    path, memory = write_job(work, script, "gpu")
    path.write_text(path.read_text().replace(
        "\nif [", f"\nenv -0 > {work}/env.$SLURM_JOB_ID; (ulimit -a; umask) > {work}/limits.$SLURM_JOB_ID\nif [", 1))
    own = [] if any("mem" in option for option in options) else [f"--mem={memory}"]
    job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=resubmit", *own, *options, path, "a b", "c", env=env)
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end", 90)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "resubmit"]
    assert {run[2] for run in runs(work)} == {"a b c"}
    return [Job(cluster, number, work / f"{number}.out") for number in story["lineage"]["jobs"]]


def told(job):
    """Also of the words of its name and comment that look like Slurm's."""
    record = job.record()
    # Scripts look for their own directory there.
    record["directory"] = os.path.dirname(record["Command"])
    return {key: value for key, value in record.items() if not OWN.fullmatch(key)}


def environment(work, job):
    lines = (work / f"env.{job.id}").read_text().split("\0")
    return {line for line in lines if line and not OWN_VARIABLES.fullmatch(line.split("=")[0])}


@pytest.mark.parametrize("options", [
    ["--gpus=2", "--cpus-per-gpu=2", "--mem-per-gpu=90", "--exclusive", "--switches=1@2", "--contiguous",
     "--time-min=5", "-t10", "--deadline=now+2hours", "--nice=7", "--mincpus=2", "--kill-on-invalid-dep=no"],
    ["-N1", "-n2", "-c2", "--ntasks-per-node=2", "--gres=gpu:1", "--mem-per-cpu=60", "--spread-job",
     "--hint=nomultithread", "--comment=two words", "--gpu-bind=closest", "--profile=none", "--delay-boot=3"],
    ["--gpus-per-task=1", "-n", "2", "--mem=300", "-s", "--cpu-freq=high", "-m", "cyclic", "--threads-per-core=1"],
    ["--gpus-per-node=a", "--export=NONE"],
    ["--mem=0", "-J", "llama lr=1e-4 BS=32", "--comment=for A=1 Team=b"],
], ids=["gpus", "tasks", "per task", "variables", "words"])
def test_options(cluster, work, script, options):
    env = None
    if "--export=NONE" in options:
        options, env = ["--export=NONE"], {
            "SBATCH_GPUS_PER_NODE": "2", "SBATCH_EXCLUSIVE": "user", "SBATCH_REQ_SWITCH": "1",
            "SBATCH_SPREAD_JOB": "", "SBATCH_WAIT_ALL_NODES": "1", "SBATCH_JOB_NAME": "by variable"}
    first, again = twice(cluster, work, script, *options, env=env)
    assert told(again) == told(first)
    # Of a job with memory by GPU Slurm shows now this, now that.
    if "--mem=0" in options:
        assert again.record()["MinMemoryNode"] == "0"


def test_environment_and_limits(cluster, work, script):
    """Also those of jobs that the script submits; nothing of oomrun's own is seen."""
    before = resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[0][1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (333, before[1][1]))
    try:
        first, again = twice(cluster, work, script, "--export=ALL,SBATCH_WAIT=1", env={
            "SBATCH_ACCOUNT": "theirs", "COLOUR": "dark\nblue", "OOMRETRY_GRACE_S": "77",
            "OOMRETRY_MEMORY": "off", "SLURM_MPI_TYPE": "none", "SRUN_CPUS_PER_TASK": "1"})
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before[0])
        resource.setrlimit(resource.RLIMIT_NOFILE, before[1])
    assert environment(work, again) == environment(work, first)
    assert "SBATCH_ACCOUNT=theirs" in environment(work, again)
    assert not any(line.startswith("OOMRETRY_SUBMITTED") for line in environment(work, again))
    assert (work / f"limits.{again.id}").read_text() == (work / f"limits.{first.id}").read_text()
    assert "333" in (work / f"limits.{first.id}").read_text()


def test_options_of_other_plugins(cluster, work, script):
    plugin = cluster.dir / "other.so"  # not where somebody but root may write
    subprocess.run(["cc", "-shared", "-fPIC", "-o", plugin, "-xc", "-"], input=OTHER_PLUGIN, text=True, check=True)
    line = cluster.original_plugstack.strip() + f"\noptional {plugin}"
    with cluster.plugstack(line):
        first, again = twice(cluster, work, script, "--other-image", "a b.sqsh", "--other-flag")
    for job in first, again:
        told_by_it = {line for line in environment(work, job) if line.startswith("OTHER")}
        assert told_by_it == {"OTHER_IMAGE=a b.sqsh", "OTHER_FLAG=given"}, job.id


def test_signal(cluster, work, script):
    """Slurm looks every half minute; the second attempt is where it is waited for."""
    path, memory = write_job(work, script, "gpu")
    trainer = work / "bin/python3"
    trainer.write_text(trainer.read_text().replace('echo "trained', 'sleep 100\necho "trained'))
    path.write_text(path.read_text().replace("\nif [", "\ntrap 'echo warned; exit 0' USR1\nif [", 1)
                    .rstrip("\n") + " &\nwait\nwait $!\n")
    job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=resubmit", f"--mem={memory}", "-t", "2",
                         "--signal=B:USR1@110", path)
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end", 120)
    again = Job(cluster, story["lineage"]["jobs"][1], work / f"{story['lineage']['jobs'][1]}.out")
    assert "warned" in again.output(), again.output()
    assert again.state == "COMPLETED"


@pytest.mark.parametrize("where", ["command line", "script"])
def test_components(cluster, work, script, where):
    """All components of a heterogeneous job, each with its own options."""
    path, memory = write_job(work, script, "gpu")
    if where == "script":
        path.write_text(path.read_text().replace(
            "\n", f"\n#SBATCH --mem={memory} --exclusive=user\n#SBATCH hetjob\n#SBATCH --mem=70 -n2\n", 1))
        job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=resubmit", path)
    else:
        job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=resubmit", f"--mem={memory}", "--exclusive=user",
                             ":", "--mem=70", "-n2", path)
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end", 90)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    first, again = [Job(cluster, number, work) for number in story["lineage"]["jobs"]]
    for offset in "+0", "+1":
        one, other = Job(cluster, first.id + offset, work), Job(cluster, again.id + offset, work)
        assert told(one) == told(other), offset
        assert one.record()["HetJobOffset"] == offset[1]


def test_what_lost_jobs_left(cluster, work, script):
    """A job captures its environment; where nobody saw its end the next job of its owner removes that
    after half a year."""
    state = Path(f"/var/tmp/oomretry-{OWNER.pw_uid}")  # he has no home
    job = cluster.sbatch(work, "--oom-retry", script("#!/bin/sh\ntrue\n"))
    assert job.wait()["JobState"] == "COMPLETED", job.output()
    for name, days in ("1.env", 200), ("2.env", 100), ("old.db", 200):
        path = state / f"{work.name}-{name}"
        path.write_text("x")
        os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
        os.utime(path, times=(time.time() - days * 86400,) * 2)
    job = cluster.sbatch(work, "--oom-retry", script("#!/bin/sh\ntrue\n"))
    assert job.wait()["JobState"] == "COMPLETED", job.output()
    left = list(state.glob(f"{work.name}-*"))
    for path in left:
        path.unlink()
    assert {path.name for path in left} == {f"{work.name}-2.env", f"{work.name}-old.db"}
