# SPDX-License-Identifier: Apache-2.0
"""A setting that needs a package is tried only where the package is seen beside the files that the
traceback names."""
import json
import sqlite3
import subprocess
import sys

import pytest

from conftest import BUILD

TRAINER = """
import sys
print('Traceback (most recent call last):', file=sys.stderr)
print('  File "{site}/trl/trainer/sft_trainer.py", line 1, in compute_loss', file=sys.stderr)
print('  File "{site}/torch/nn/functional.py", line 1, in cross_entropy', file=sys.stderr)
sys.exit('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.')
"""


def package(site, name):
    (site / name).mkdir(parents=True)
    (site / name / "__init__.py").touch()


@pytest.mark.parametrize("installed,known", [(("torch", "liger_kernel"), "true"),
                                             (("torch",), "false"), ((), None)])
def test_packages_are_looked_for_where_the_job_ran(policies, tmp_path, installed, known):
    site = tmp_path / "venv/lib/python3.11/site-packages"
    for name in installed:
        package(site, name)
    (tmp_path / "sft.py").write_text(TRAINER.format(site=site))
    (tmp_path / "job.sh").write_text(f"{sys.executable} sft.py --model_name_or_path m "
                                     "--per_device_train_batch_size 1 --max_length 512\n")
    env = {name: value for name, value in policies.env.items()
           if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    subprocess.run([BUILD / "bin/oomrun", "--db", policies.db, "--", "bash", "job.sh"],
                   cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False)
    with sqlite3.connect(policies.db) as db:
        (values,) = db.execute("SELECT values_json FROM attempt ORDER BY number").fetchone()
        rungs = [json.loads(row[0]).get("rung") for row in
                 db.execute("SELECT decision FROM attempt WHERE decision IS NOT NULL")]
    assert json.loads(values).get("package.liger_kernel", {}).get("value") == known
    assert ("liger-kernel" in rungs) == (known == "true")
