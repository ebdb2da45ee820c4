# SPDX-License-Identifier: Apache-2.0
"""oomctl diagnose --job: a job's own files, found through a real Slurm and read as the caller."""
import json
import os

import pytest

from conftest import Job, wait_for

OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
       "capacity of 79.15 GiB of which 1.02 GiB is free.")
FAIL = f"""echo 'Traceback (most recent call last):'
echo '  File "/x/train.py", line 3, in backward'
echo '{OOM}'
"""


def diagnose(cluster, job, *options, root=False):
    done = cluster.oomctl("diagnose", "--json", *options, "--job", job, root=root)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def test_a_failed_job(cluster, work, script):
    job = cluster.sbatch(work, script(f"#!/bin/bash\necho working\n{FAIL}exit 1\n"))
    job.wait()
    status, got = diagnose(cluster, job.id)
    assert status == 0, got
    assert (got["domain"], got["phase"]) == ("gpu", "backward")
    assert got["cause"]["file"] == str(job.path) and got["cause"]["line"] == 4
    assert got["numbers"]["tried"] == 2 << 30
    people = cluster.oomctl("diagnose", "--job", job.id).stdout
    assert people.startswith("GPU out of memory in backward") and f"{job.path}:4" in people


def test_the_end_comes_from_slurm(cluster, work, script):
    """Words of failure and a good end: no failure. Words of none and Slurm's verdict: one."""
    job = cluster.sbatch(work, script(
        f"#!/bin/bash\n{FAIL}echo 'caught, retrying with a smaller batch'\n"
        "echo \"{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\"\n"))
    assert job.wait()["JobState"] == "COMPLETED"
    assert diagnose(cluster, job.id)[0] == 1
    job = cluster.sbatch(work, script("#!/bin/bash\necho working; exit 3\n"))
    job.wait()
    status, got = diagnose(cluster, job.id)
    assert status == 1 and got["evidence"] == "exit data"
    # What the caller states goes before what Slurm says.
    assert diagnose(cluster, job.id, "--state", "OUT_OF_MEMORY")[0] == 0


def test_while_it_runs(cluster, work, script):
    job = cluster.sbatch(work, script(f"#!/bin/bash\n{FAIL}sleep 60\n"))
    job.wait("RUNNING")
    wait_for(lambda: OOM in job.output(), "the failure in the log")
    status, got = diagnose(cluster, job.id)
    cluster.run("scancel", job.id)
    assert status == 0 and got["phase"] == "backward"  # its exit code of 0 so far says nothing
    job.wait()


def test_files_for_each_task(cluster, work, script):
    """srun's own files, by task and by node, are found through the script."""
    path = script(f"""#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=1
cat > step.sh <<'END'
echo "task $SLURM_PROCID works"
[ $SLURM_PROCID = 1 ] || exit 0
{FAIL}exit 1
END
srun --output=task-%t-of-$SLURM_JOB_ID.txt \\
     -e "task-%N.err" bash step.sh
""")
    job = cluster.sbatch(work, path)
    job.wait()
    written = work / f"task-1-of-{job.id}.txt"
    assert OOM in written.read_text(), os.listdir(work)
    status, got = diagnose(cluster, job.id)
    assert status == 0, got
    assert got["cause"]["file"] == str(written) and got["cause"]["line"] == 4


@pytest.mark.parametrize("pattern", ["out.%j.%N.%t", "%x-%4j.%n", "%A_%a.%s.log", "100%%-%u"])
def test_patterns_of_the_batch_output(cluster, work, script, pattern):
    path = script(f"#!/bin/bash\n{FAIL}exit 1\n")
    done = cluster.run("sbatch", "--parsable", "-J", "my run", "-o", work / pattern, path, cwd=work)
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip()
    Job(cluster, number, work / "none").wait()
    status, got = diagnose(cluster, number)
    assert status == 0, (got, os.listdir(work))
    assert os.path.dirname(got["cause"]["file"]) == str(work) and got["cause"]["line"] == 3


def test_a_task_of_an_array(cluster, work, script):
    path = script(f"""#!/bin/bash
[ $SLURM_ARRAY_TASK_ID = 2 ] || exit 0
{FAIL}exit 1
""")
    done = cluster.run("sbatch", "--parsable", "--array=1-2", path, cwd=work)
    number = done.stdout.strip()
    for task in (1, 2):
        Job(cluster, f"{number}_{task}", work / f"slurm-{number}_{task}.out").wait()
    assert diagnose(cluster, f"{number}_1")[0] == 1
    status, got = diagnose(cluster, f"{number}_2")
    assert status == 0 and got["cause"]["file"] == str(work / f"slurm-{number}_2.out")
    status, error = diagnose(cluster, number)
    assert status == 2 and f"{number} is an array" in error and f"{number}_" in error


def test_read_as_the_caller(cluster, work, script):
    """What the caller may not read is an error that names the file, whoever owns the job."""
    job = cluster.sbatch(work, script(f"#!/bin/bash\n{FAIL}exit 1\n"))
    job.wait()
    os.chown(job.path, 0, 0)
    job.path.chmod(0o600)
    status, error = diagnose(cluster, job.id)
    assert status == 2 and str(job.path) in error and "Permission denied" in error
    assert diagnose(cluster, job.id, root=True)[0] == 0
    job.path.unlink()
    status, error = diagnose(cluster, job.id)
    assert status == 2 and str(job.path) in error


def test_a_job_that_slurm_forgot(cluster):
    status, error = diagnose(cluster, "999999")
    assert status == 2
    assert "job 999999" in error and "MinJobAge" in error and "--state" in error
    for bad in ("x", "1;2", "-1", ""):
        status, error = diagnose(cluster, bad)
        assert status == 2 and "is no job id" in error
