# SPDX-License-Identifier: Apache-2.0
"""A trainer of a few lines under the real name of Relax's entry point, for tests of what happens
between attempts; what it does beside running out is in the files of its directory."""
import json
import subprocess

import pytest

from programs import OOMCTL, OOMRUN

# The number in the file "needs" is what fits; without it 7000 tokens do.
TRAINER = '''#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
echo "$*" >> starts
tokens=0
for word; do
    [ "$last" = --max-tokens-per-gpu ] && tokens=$word
    last=$word
done
oom() {
    cat <<'END'
  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.
END
}
[ ! -e before ] || . ./before
if [ "$tokens" -gt "$(cat needs 2>/dev/null || echo 7000)" ]; then
    oom
    [ ! -e after ] || . ./after
    exit 1
fi
echo "trained with $tokens"
'''
SCRIPT = '''#!/bin/bash
ARGS=(
   --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu 12288
   MORE
)
python3 -m relax.entrypoints.train "${ARGS[@]}"
'''


class Place:
    """A directory with a job, a `python3` that is the trainer, and a database of its own."""

    def __init__(self, path):
        self.path, self.script = path, SCRIPT
        (path / 'bin').mkdir()
        trainer = path / 'bin/python3'
        trainer.write_text(TRAINER)
        trainer.chmod(0o755)
        (path / 'no.conf').write_text('head_socket: /nonexistent/head.sock\n')
        self.env = {'PATH': f'{path}/bin:/usr/bin:/bin', 'HOME': str(path), 'LANG': 'C.UTF-8',
                    'XDG_STATE_HOME': str(path / 'state'), 'OOMRETRY_CONFIG': str(path / 'no.conf')}

    def write(self, **files):
        for name, text in files.items():
            (self.path / name).write_text(text)

    def run(self, *options, more='', env=None, under=()):
        """Runs the job under oomrun, and that under other programs; (status, all output)."""
        (self.path / 'train.sh').write_text(self.script.replace('MORE', more))
        done = subprocess.run([*under, OOMRUN, *options, '--', 'bash', 'train.sh'], cwd=self.path,
                              env={**self.env, **(env or {})}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        return done.returncode, done.stdout

    def ctl(self, *arguments):
        done = subprocess.run([OOMCTL, *arguments], cwd=self.path, env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def story(self, what='L1'):
        return json.loads(self.ctl('history', '--json', what))

    def starts(self):
        return (self.path / 'starts').read_text().splitlines()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)
