# SPDX-License-Identifier: Apache-2.0
"""What the Ray watcher takes of a processor at rest, with 1,000 jobs listed by a real dashboard.

The records are real ones in Ray's own store; that many jobs are not run for it: each would take
seconds of a processor. 5 of them are opted in and (as far as Ray knows) running, the others have
ended and carry the 20,000 bytes of log that Ray keeps with a failed job."""
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ["OOMRETRY_BUILD"] = sys.argv[1]
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ray"))
from ray_harness import Ray, Service, ray_bin, wait_for  # noqa: E402

JOBS, FOLLOWED, SECONDS = 1000, 5, 60
FILL = f"""
import asyncio, time, ray
from ray._raylet import GcsClient
from ray.dashboard.modules.job.common import JobInfo, JobInfoStorageClient
store = JobInfoStorageClient(GcsClient(address="%s"))
async def fill():
    now = int(time.time() * 1000)
    for i in range({JOBS}):
        running = i < {FOLLOWED}
        info = JobInfo(status="RUNNING" if running else "FAILED", entrypoint=f"python train.py {{i}}",
                       message=None if running else "x" * 20000, start_time=now - 60000,
                       end_time=None if running else now,
                       metadata={{"oom_retry": "auto"}} if running else {{}})
        await store.put_info(f"job-{{i}}", info)
asyncio.run(fill())
"""


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watcher_of(agent):
    """The child that has no connection of its own to the outside: the second one."""
    return [int(word) for word in Path(
        f"/proc/{agent}/task/{agent}/children").read_text().split()][1]


def main():
    ray = Ray(ray_bin())
    service = None
    try:
        ray.start(worker=False)
        subprocess.run([str(ray.bin / "python"), "-c", FILL % f"127.0.0.1:{ray.gcs}"], check=True,
                       env=ray.environment())
        began = time.monotonic()
        size = len(str(ray.get("/api/jobs/")))
        answer = time.monotonic() - began
        service = Service(ray).start()
        wait_for(lambda: len(service.lineages()) == FOLLOWED, "the opted-in jobs to be followed")
        time.sleep(5)
        pid = watcher_of(service.process.pid)
        before, began = cpu_seconds(pid), time.monotonic()
        time.sleep(SECONDS)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        print(f"{JOBS} jobs ({size >> 10} KiB a list, answered in {answer:.2f} s), {FOLLOWED} of them "
              f"followed: {share * 100:.2f} % of a core over {SECONDS} s")
        return 0 if share <= 0.01 else 1
    finally:
        if service:
            service.stop()
        ray.remove()


if __name__ == "__main__":
    sys.exit(main())
