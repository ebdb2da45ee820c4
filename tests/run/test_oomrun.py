# SPDX-License-Identifier: Apache-2.0
"""oomrun by hand: a command ends as it would without it, and what it does when memory ran out.

The trainer here is a few lines of shell and Python under the real name of Relax's entry point.
"""
import json
import os
import pty
import signal
import sqlite3
import stat
import subprocess
import time

import pytest

from programs import OOMCTL, OOMRUN

OOM = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity '
       'of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB '
       'memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 100.00 MiB is '
       'reserved by PyTorch but unallocated.')

TRAINER = f'''#!/usr/bin/python3
import os, sys, time
args = sys.argv[1:]
tokens = [int(b) for a, b in zip(args, args[1:]) if a == "--max-tokens-per-gpu"][-1]
print("tokens", tokens, flush=True)
time.sleep(0.15)
if tokens > 7000:
    print('  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor', flush=True)
    print({OOM!r}, flush=True)
    if os.path.exists("hang"):
        time.sleep(300)
    sys.exit(1)
time.sleep(0.5)  # long enough for its arguments to be seen on a busy machine
print("done", flush=True)
'''

SCRIPT = '''#!/bin/bash
ARGS=(
   --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu 12288
)
%s
'''
LAUNCH = 'python3 -m relax.entrypoints.train "${ARGS[@]}"'


@pytest.fixture
def place(tmp_path):
    """A directory with a `python3` that is the trainer, and an environment for it."""
    bin_dir = tmp_path / 'bin'
    bin_dir.mkdir()
    trainer = bin_dir / 'python3'
    trainer.write_text(TRAINER)
    trainer.chmod(0o755)
    env = {'PATH': f'{bin_dir}:/usr/bin:/bin', 'HOME': str(tmp_path), 'LANG': 'C.UTF-8',
           'XDG_STATE_HOME': str(tmp_path / 'state'), 'OOMRETRY_CONFIG': str(tmp_path / 'no.conf')}
    (tmp_path / 'no.conf').write_text('head_socket: /nonexistent/head.sock\n')
    return tmp_path, env


def run(place, *argv, options=(), **kwargs):
    where, env = place
    return subprocess.run([OOMRUN, *options, '--', *argv], cwd=where, env=env, capture_output=True,
                          timeout=60, **kwargs)


def script(place, launch=LAUNCH, name='train.sh'):
    path = place[0] / name
    path.write_text(SCRIPT % launch)
    path.chmod(0o755)
    return name


def history(place, what='L1'):
    where, env = place
    out = subprocess.run([OOMCTL, 'history', '--json', what], cwd=where, env=env, capture_output=True,
                         timeout=20)
    return json.loads(out.stdout)


@pytest.mark.parametrize('command, status', [
    (['true'], 0), (['false'], 1), (['sh', '-c', 'exit 77'], 77), (['no-such-program'], 127),
    (['/etc/passwd'], 126), (['sh', '-c', 'kill -9 $$'], -9), (['sh', '-c', 'kill -TERM $$'], -15),
    (['sh', '-c', 'kill -SEGV $$'], -11)])
def test_ends_like_the_command(place, command, status):
    assert run(place, *command).returncode == status


def test_wrong_usage(place):
    where, env = place
    for words in ([], ['--max-retries=many', '--', 'true'], ['--mode=sideways', '--', 'true']):
        p = subprocess.run([OOMRUN, *words], cwd=where, env=env, capture_output=True, timeout=20)
        assert p.returncode == 64 or p.returncode == 2, p.stderr


def test_output_passes_through_untouched(place):
    data = bytes(range(256)) * 3000
    (place[0] / 'data').write_bytes(data)
    p = run(place, 'cat', 'data')
    assert p.stdout == data and p.stderr == b''


def test_standard_input_and_arguments(place):
    p = run(place, 'sh', '-c', 'cat; printf "[%s]" "$@"', 'x', 'a b', '', '$c', input=b'in')
    assert p.stdout == b'in[a b][][$c]'


def test_terminal_stays_a_terminal(place):
    where, env = place
    master, slave = pty.openpty()
    p = subprocess.Popen([OOMRUN, '--', 'sh', '-c', 'test -t 1 && echo terminal'], cwd=where, env=env,
                         stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    p.wait(20)
    assert b'terminal\r\n' in os.read(master, 4096)
    os.close(master)


@pytest.mark.parametrize('how', ['bash train.sh', './train.sh', 'bash -x train.sh', 'sh train.sh x'])
def test_script_is_changed_and_runs_again(place, how):
    name = script(place, LAUNCH if not how.startswith('sh ') else
                  'python3 -m relax.entrypoints.train --use-dynamic-batch-size --max-tokens-per-gpu 12288')
    if how.startswith('sh '):
        (place[0] / name).write_text('#!/bin/sh\npython3 -m relax.entrypoints.train --use-dynamic-batch-size '
                                     '--recompute-granularity full --recompute-method uniform '
                                     '--recompute-num-layers 1 --max-tokens-per-gpu 12288\n')
    before = (place[0] / name).read_bytes()
    p = run(place, *how.split())
    assert p.returncode == 0, p.stderr
    assert b'done' in p.stdout
    assert (place[0] / name).read_bytes() == before, 'the user\'s file must not change'
    assert os.listdir(place[0]).count(name) == 1
    assert not [f for f in os.listdir(place[0]) if 'oomrun' in f], 'the copy stays behind'
    tree = history(place)
    assert tree['lineage']['state'] == 'completed'
    last = tree['attempts'][-1]
    assert last['applied'] == 'yes', last['proof']
    assert any(e['knob'] == '--max-tokens-per-gpu' and int(e['new']) < 7000 for e in last['total_edits'])
    assert '-' in last['diff'] and '+' in last['diff']


def test_plain_command_is_changed(place):
    p = run(place, 'python3', '-m', 'relax.entrypoints.train', '--use-dynamic-batch-size',
            '--recompute-granularity', 'full', '--recompute-method', 'uniform', '--recompute-num-layers', '1',
            '--max-tokens-per-gpu', '12288')
    assert p.returncode == 0, p.stderr
    assert b'tokens 12288' in p.stdout and b'done' in p.stdout


def test_log_elsewhere_is_found(place):
    name = script(place, 'mkdir -p logs; ' + LAUNCH + ' > logs/train.log 2>&1')
    p = run(place, 'bash', name)
    assert p.returncode == 0, p.stderr
    assert 'done' in (place[0] / 'logs/train.log').read_text()


SHORT_OF_WORDS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stddef.h>
struct dirent *readdir(DIR *directory)
{
    struct dirent *(*real)(DIR *) = (struct dirent *(*)(DIR *))dlsym(RTLD_NEXT, "readdir");
    struct dirent *entry = real(directory);
    if (entry)
        entry->d_type = DT_UNKNOWN;
    return entry;
}
"""


def test_log_on_a_file_system_that_does_not_say_what_is_a_file(place):
    """As NFS, which lists a large directory by names alone."""
    (place[0] / 'names.c').write_text(SHORT_OF_WORDS)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', place[0] / 'names.so', place[0] / 'names.c'], check=True)
    place[1]['LD_PRELOAD'] = str(place[0] / 'names.so')
    # Where the log is, only a search of the directory tells.
    name = script(place, 'mkdir -p logs; exec > "$(printf logs/%s train.log)" 2>&1; ' + LAUNCH)
    p = run(place, 'bash', name)
    assert p.returncode == 0, p.stderr
    assert 'done' in (place[0] / 'logs/train.log').read_text()


def test_status_hidden_by_a_pipe(place):
    name = script(place, LAUNCH + ' 2>&1 | tee train.log')
    p = run(place, 'bash', name)
    assert p.returncode == 0 and b'done' in p.stdout, p.stdout + p.stderr


def test_script_that_handles_the_failure_is_left_alone(place):
    name = script(place, LAUNCH + ' || echo "falling back"')
    p = run(place, 'bash', name)
    assert p.returncode == 0
    assert p.stdout.count(b'tokens') == 1, 'not retried'
    assert history(place)['lineage']['state'] == 'completed'


def test_no_retry_for_other_failures(place):
    name = script(place, 'echo "ValueError: no such column" >&2; exit 3')
    p = run(place, 'bash', name)
    assert p.returncode == 3
    assert b'not retried: exit 3, no sign of memory' in p.stderr
    assert history(place)['lineage']['state'] == 'failed'


def test_dry_run_says_and_does_nothing(place):
    name = script(place)
    p = run(place, 'bash', name, options=['--dry-run'])
    assert p.returncode == 1
    assert p.stdout.count(b'tokens') == 1
    assert b'dry run' in p.stderr and b'--max-tokens-per-gpu 12288 -> 6144' in p.stderr


def test_bound_on_retries(place):
    name = script(place)
    p = run(place, 'bash', name, options=['--max-retries=0'])
    assert p.returncode == 1
    assert p.stdout.count(b'tokens') == 1
    assert history(place)['lineage']['state'] == 'stopped'


def test_a_change_that_does_not_arrive_ends_it(place):
    where, env = place
    # What the script calls is a wrapper that has made up its mind.
    module = where / 'lib/relax/entrypoints'
    module.mkdir(parents=True)
    (module / 'train.py').write_text(TRAINER.replace('time.sleep(0.15)', 'time.sleep(0.5)'))
    (where / 'bin/python3').write_text(
        f'#!/bin/sh\nPYTHONPATH={where}/lib exec /usr/bin/python3 -m relax.entrypoints.train '
        '--use-dynamic-batch-size --max-tokens-per-gpu 12288\n')
    p = run(place, 'bash', script(place))
    assert p.returncode == 1
    assert p.stdout.count(b'tokens') == 2, 'it is not repeated'
    tree = history(place)
    assert tree['lineage']['state'] == 'stopped'
    assert 'did not arrive' in tree['lineage']['reason']
    assert tree['attempts'][1]['applied'] == 'no'
    assert '--max-tokens-per-gpu' in tree['attempts'][1]['proof']


def test_a_cancelled_command_is_not_retried(place):
    where, env = place
    name = script(place)
    (where / 'hang').touch()
    p = subprocess.Popen([OOMRUN, '--', 'bash', name], cwd=where, env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    assert b'tokens' in p.stdout.readline()
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=20)
    assert p.returncode == -signal.SIGTERM, err
    assert b'tokens' not in out
    assert history(place)['lineage']['state'] == 'cancelled'


def test_a_hanging_job_is_ended_and_retried(place):
    where, env = place
    # A bash that waits for a peer which will not come, as ranks wait in a collective.
    name = script(place, LAUNCH)
    (where / 'hang').touch()
    start = time.time()
    trainer = (where / 'bin/python3').read_text().replace(
        'print("done"', 'os.remove("hang") if os.path.exists("hang") else None\nprint("done"')
    (where / 'bin/python3').write_text(trainer)
    p = run(place, 'bash', name, options=['--grace=2'])
    took = time.time() - start
    assert p.returncode == 0, p.stderr
    assert b'silent for' in p.stderr and b'done' in p.stdout
    assert took < 15, took


def test_leftovers_are_gone_before_the_next_attempt(place):
    where, _ = place
    # A daemon that left its session and holds a lock until it is ended.
    name = script(place, 'if [ -e lock ] && kill -0 "$(cat lock)" 2>/dev/null; then echo "still there"; fi\n'
                         'setsid sh -c \'echo $$ > lock; exec sleep 120\' &\nsleep 0.2\n' + LAUNCH)
    p = run(place, 'bash', name)
    assert p.returncode == 0, p.stderr
    assert b'still there' not in p.stdout
    os.kill(int((where / 'lock').read_text()), 9)


def test_copy_stands_beside_the_script(place):
    where, _ = place
    (where / 'sub').mkdir()
    (where / 'sub/vars.sh').write_text('TOKENS=12288\n')
    path = where / 'sub/train.sh'
    path.write_text('#!/bin/bash\nsource "$(dirname "$0")/vars.sh"\n'
                    'python3 -m relax.entrypoints.train --use-dynamic-batch-size --recompute-granularity full '
                    '--recompute-method uniform --recompute-num-layers 1 --max-tokens-per-gpu $TOKENS\n')
    p = run(place, 'bash', 'sub/train.sh')
    assert p.returncode == 0, p.stderr
    assert (where / 'sub/vars.sh').read_text() == 'TOKENS=12288\n'
    assert sorted(os.listdir(where / 'sub')) == ['train.sh', 'vars.sh']


def test_what_worked_before_comes_first(place):
    name = script(place)
    assert run(place, 'bash', name).returncode == 0
    assert run(place, 'bash', name).returncode == 0
    assert len(history(place, 'L2')['attempts']) == 2
    second = history(place, 'L2')['attempts'][1]
    assert second['decision']['rung'] == 'as-before'
    p = run(place, 'bash', name, options=['--no-memory'])
    assert p.returncode == 0
    assert history(place, 'L3')['attempts'][1]['decision']['rung'] != 'as-before'
    place[1]['OOMRETRY_MEMORY'] = 'off'
    assert run(place, 'bash', name).returncode == 0
    assert history(place, 'L4')['attempts'][1]['decision']['rung'] != 'as-before'
    del place[1]['OOMRETRY_MEMORY']
    # Another comment or job name makes no other script; another command does.
    where, _ = place
    text = (where / name).read_text()
    (where / name).write_text(text.replace('ARGS=(', '#SBATCH --job-name=again\n\n# as yesterday\nARGS=('))
    assert run(place, 'bash', name).returncode == 0
    assert history(place, 'L5')['attempts'][1]['decision']['rung'] == 'as-before'
    (where / name).write_text(text.replace('ARGS=(', 'echo\nARGS=('))
    assert run(place, 'bash', name).returncode == 0
    assert history(place, 'L6')['attempts'][1]['decision']['rung'] != 'as-before'


def test_other_gpus_teach_nothing(place):
    where, _ = place
    name = script(place)
    assert run(place, 'bash', name).returncode == 0
    trainer = where / 'bin/python3'
    trainer.write_text(trainer.read_text().replace('79.15 GiB of', '39.39 GiB of'))
    assert run(place, 'bash', name).returncode == 0
    assert history(place, 'L2')['attempts'][1]['decision']['rung'] != 'as-before'


def test_memory_keeps_to_the_owners_wishes(place):
    name = script(place)
    assert run(place, 'bash', name).returncode == 0
    assert run(place, 'bash', name, options=['--max-retries', '0']).returncode == 1
    assert len(history(place, 'L2')['attempts']) == 1
    assert run(place, 'bash', name, options=['--policy', 'relax']).returncode == 0
    assert history(place, 'L3')['attempts'][1]['decision']['rung'] != 'as-before'


def test_consent_is_not_remembered(place):
    name = script(place)
    assert run(place, 'bash', name, options=['--allow', 'training']).returncode == 0
    # As if a rung that changes what is trained had been the one that worked.
    with sqlite3.connect(place[0] / 'state/oomretry/oomretry.db') as db:
        db.execute("UPDATE attempt SET decision = json_set(decision, '$.changes_training', json('true')) "
                   'WHERE decision IS NOT NULL')
    assert run(place, 'bash', name).returncode == 0
    assert history(place, 'L2')['attempts'][1]['decision']['rung'] != 'as-before'
    with sqlite3.connect(place[0] / 'state/oomretry/oomretry.db') as db:
        db.execute("UPDATE lineage SET state = 'failed' WHERE id = 2")
    assert run(place, 'bash', name, options=['--allow', 'training']).returncode == 0
    assert history(place, 'L3')['attempts'][1]['decision']['rung'] == 'as-before'


def test_goes_on_from_a_complete_checkpoint(place):
    where, _ = place
    name = script(place, LAUNCH + ' --load /models/base --save ckpt')
    (where / 'ckpt').mkdir()
    (where / 'ckpt/latest_checkpointed_iteration.txt').write_text('20')
    assert run(place, 'bash', name).returncode == 0
    edits = {e['knob']: e['new'] for e in history(place)['attempts'][1]['total_edits']}
    assert edits['--load'] == 'ckpt'
    # Without one, the start is the user's own, whatever is remembered.
    (where / 'ckpt/latest_checkpointed_iteration.txt').unlink()
    for lineage, options in (('L2', ['--no-memory']), ('L3', [])):
        assert run(place, 'bash', name, options=options).returncode == 0
        assert '--load' not in {e['knob'] for e in history(place, lineage)['attempts'][1]['total_edits']}
    (where / 'ckpt/latest_checkpointed_iteration.txt').write_text('40')
    assert run(place, 'bash', name).returncode == 0
    last = history(place, 'L4')['attempts'][1]
    assert last['decision']['rung'] == 'as-before'
    assert {e['knob']: e['new'] for e in last['total_edits']}['--load'] == 'ckpt'


def test_database_is_private_and_holds_no_secret(place):
    where, env = place
    name = script(place, 'echo "--wandb-key 0123456789abcdef0123456789abcdef01234567 HF_TOKEN=hf_aBcDeFgHiJkLmNoPqRsT"\n'
                         + LAUNCH)
    assert run(place, 'bash', name).returncode == 0
    db = where / 'state/oomretry/oomretry.db'
    assert stat.S_IMODE(db.stat().st_mode) == 0o600
    for path in db.parent.iterdir():
        data = path.read_bytes()
        assert b'0123456789abcdef01234567' not in data
        assert b'hf_aBcDeFgHiJkLmNoPqRsT' not in data


def test_plan_says_what_the_run_did(place):
    where, env = place
    name = script(place)
    with open(where / 'log', 'wb') as log:
        subprocess.run([OOMRUN, '--', 'bash', name], cwd=where, env=env, stdout=log, stderr=log, timeout=60)
    done = history(place)['attempts'][1]['decision']
    cut = (where / 'log').read_bytes().split(b'oomrun:')[0]
    (where / 'first.log').write_bytes(cut)
    p = subprocess.run([OOMCTL, 'plan', '--json', '--exit-code', '1', '--script', name, 'first.log'], cwd=where,
                       env=env, capture_output=True, timeout=20)
    plan = json.loads(p.stdout)
    assert p.returncode == 0 and plan['action'] == 'retry'
    for key in ('rung', 'kind', 'policy'):
        assert plan[key] == done[key]
    assert [(e['knob'], e['new']) for e in plan['edits']] == [(e['knob'], e['new']) for e in done['edits']]
    assert plan['edits'][0]['where'].startswith('script:')
    assert plan['diff'].startswith('---')


# --- standard input --------------------------------------------------------------------------------

def given(place, by, command):
    """The script by standard input: from a file, or through a pipe as a here-document comes."""
    where, env = place
    script(place, 'echo "for $1"\n' + LAUNCH)
    if by == 'pipe':
        return run(place, *command, input=(where / 'train.sh').read_bytes())
    with open(where / 'train.sh', 'rb') as f:
        return subprocess.run([OOMRUN, '--', *command], cwd=where, env=env, stdin=f, capture_output=True, timeout=60)


@pytest.mark.parametrize('by', ['file', 'pipe'])
@pytest.mark.parametrize('command', [['bash', '-s', 'me'], ['bash']])
def test_a_script_by_standard_input_is_changed(place, by, command):
    p = given(place, by, command)
    out = p.stdout.decode().split('\n')
    assert p.returncode == 0, p.stderr.decode()
    assert 'tokens 12288' in out and 'done' in out
    assert ('for me' if 'me' in command else 'for ') in out
    assert b'script line 5: --max-tokens-per-gpu 12288 -> ' in p.stderr
    assert not list(place[0].glob('.*oomrun*'))


def test_a_script_by_standard_input_reads_on_there(place):
    p = run(place, 'bash', '-s', input=b'read x\nthe next line\necho "got $x"\nexit 4\n')
    assert p.returncode == 4 and p.stdout == b'got the next line\n'


def test_commands_are_run_as_they_are_typed(place):
    where, env = place
    p = subprocess.Popen([OOMRUN, '--', 'bash'], cwd=where, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(b'echo one\n')
    p.stdin.flush()
    assert p.stdout.readline() == b'one\n'
    p.stdin.write(b'exit 6\n')
    p.stdin.close()
    assert p.wait(timeout=30) == 6


def test_every_attempt_reads_the_same_input(place):
    where, env = place
    (where / 'data').write_text('hello\n')
    name = script(place, 'read x; echo "got $x"\n' + LAUNCH)
    with open(where / 'data', 'rb') as f:
        p = subprocess.run([OOMRUN, '--', 'bash', name], cwd=where, env=env, stdin=f, capture_output=True, timeout=60)
    assert p.returncode == 0, p.stderr.decode()
    assert p.stdout.count(b'got hello') == p.stdout.count(b'tokens ') > 1


def test_a_policy_that_is_none_is_told_and_auto_is_used(place):
    p = run(place, 'bash', script(place), options=['--policy', 'relx'])
    assert p.returncode == 0, p.stderr.decode()
    assert b'no policy is called relx; did you mean relax?' in p.stderr


# ---- settings in other files

DEEPSPEED = f'''#!/usr/bin/python3
import json, sys, time
args = sys.argv[1:]
with open(args[args.index("--deepspeed") + 1]) as file:
    zero = json.load(file)["zero_optimization"]
print("optimizer on", zero["offload_optimizer"]["device"], flush=True)
time.sleep(1)
if zero["offload_optimizer"]["device"] == "none":
    print('  File "/x/deepspeed/runtime/engine.py", line 2335, in step', flush=True)
    print('    self._take_model_step(lr_kwargs)', flush=True)
    print({OOM!r}, flush=True)
    sys.exit(1)
print("done", flush=True)
'''


def test_a_deepspeed_json_is_changed_in_a_copy(place):
    where, env = place
    (where / 'bin/python3').write_text(DEEPSPEED)
    (where / 'conf').mkdir()
    text = '{\n  "zero_optimization": {\n    "stage": 2,\n    "offload_optimizer": {"device": "none"}\n  }\n}\n'
    (where / 'conf/ds.json').write_text(text)
    (where / 'train.sh').write_text('#!/bin/bash\npython3 train.py --deepspeed conf/ds.json --bf16 true '
                                    '--per_device_train_batch_size 1 --gradient_checkpointing true\n')
    p = run(place, 'bash', 'train.sh')
    assert p.returncode == 0, p.stdout + p.stderr
    assert b'optimizer on none' in p.stdout and b'optimizer on cpu' in p.stdout and b'done' in p.stdout
    assert (where / 'conf/ds.json').read_text() == text, 'the user\'s file must not change'
    assert os.listdir(where / 'conf') == ['ds.json'], 'the copy stays behind'
    last = history(place)['attempts'][1]
    assert last['applied'] == 'yes', last['proof']
    out = subprocess.run([OOMCTL, 'explain', 'L1'], cwd=where, env=env, capture_output=True, timeout=20)
    assert b'+++ conf/ds.json' in out.stdout
    assert b'+    "offload_optimizer": {"device": "cpu"}' in out.stdout


def test_a_called_file_is_changed_in_a_copy(place):
    where, env = place
    (where / 'train').mkdir()
    (where / 'train/run.sh').write_text(SCRIPT % LAUNCH)
    (where / 'train/run.sh').chmod(0o755)
    (where / 'job.sh').write_text('#!/bin/bash\n./train/run.sh\n')
    p = run(place, 'bash', 'job.sh')
    assert p.returncode == 0, p.stdout + p.stderr
    assert b'tokens 12288' in p.stdout and b'done' in p.stdout
    assert (where / 'train/run.sh').read_text() == SCRIPT % LAUNCH
    assert os.listdir(where / 'train') == ['run.sh'], 'the copy stays behind'
    assert history(place)['attempts'][1]['applied'] != 'no'


def test_a_directory_that_cannot_be_written_to(place):
    """The copy of a configuration then stands where the job was started."""
    where, env = place
    if os.getuid() == 0:
        pytest.skip('root writes everywhere')
    (where / 'bin/python3').write_text(DEEPSPEED)
    (where / 'conf').mkdir()
    (where / 'conf/ds.json').write_text('{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}}')
    (where / 'conf').chmod(0o500)
    (where / 'train.sh').write_text('python3 train.py --deepspeed conf/ds.json --per_device_train_batch_size 1 '
                                    '--gradient_checkpointing true\n')
    p = run(place, 'bash', 'train.sh')
    (where / 'conf').chmod(0o700)
    assert p.returncode == 0, p.stdout + p.stderr
    assert not [name for name in os.listdir(where) if 'oomrun' in name]


def test_where_a_change_was_written_is_said_in_full(place):
    """A file's name is longer than a line number."""
    directory, env = place
    config = directory / 'configs/a-directory-of-some-length/deepspeed-zero2.json'
    config.parent.mkdir(parents=True)
    config.write_text('{"train_micro_batch_size_per_gpu": "auto",\n "zero_optimization": {"stage": 2}}\n')
    (directory / 'bin/python3').write_text(f'#!/bin/bash\necho {OOM!r}\nexit 1\n')
    (directory / 'train.sh').write_text(
        'python3 -m trl.scripts.sft --per_device_train_batch_size 1 --gradient_accumulation_steps 8 '
        '--gradient_checkpointing true --deepspeed configs/a-directory-of-some-length/deepspeed-zero2.json\n')
    said = subprocess.run([OOMRUN, '--', 'bash', 'train.sh'], cwd=directory, env=env, capture_output=True, text=True,
                          timeout=60).stderr
    assert 'configs/a-directory-of-some-length/deepspeed-zero2.json:2: add ds:' in said, said
