# SPDX-License-Identifier: Apache-2.0
"""A script that starts an inference server beside its training: the log tells which of them ran out,
and what it leaves open is the training."""
import json
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OOMCTL = os.path.join(os.environ.get('OOMRETRY_BUILD', os.path.join(ROOT, 'build')), 'bin', 'oomctl')

OOM = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of '
       '79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB memory in use.\n')
FRAME = '  File "/usr/lib/python3/dist-packages/{}", line 7, in {}\n    x\n'
TRAINER = ('***** Running training *****\n[rank0]: Traceback (most recent call last):\n'
           + ''.join('[rank0]: ' + line for line in (FRAME.format('transformers/trainer.py', 'training_step')
                     + FRAME.format('transformers/models/qwen3/modeling_qwen3.py', 'forward')).splitlines(True))
           + '[rank0]: ' + OOM)
SERVER = ('Traceback (most recent call last):\n' + FRAME.format('vllm/v1/worker/gpu_worker.py', 'execute_model') + OOM)
SERVERS = ['vllm serve Q --port 8000 &\n', 'python3 -m sglang.launch_server --model-path Q &\n',
           'srun trl vllm-serve --model Q --gpu_memory_utilization 0.9 &\n']
TRAIN = 'torchrun sft.py --model_name_or_path Q --per_device_train_batch_size 8 --gradient_accumulation_steps 2\n'


def plan(path, script, log):
    (path / 'train.sh').write_text(script)
    (path / 'log').write_text(log)
    done = subprocess.run([OOMCTL, 'plan', '--json', '--exit-code', '1', '--script', 'train.sh', 'log'], cwd=path,
                          env={'PATH': '/usr/bin:/bin', 'HOME': str(path)}, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


@pytest.mark.parametrize('server', SERVERS)
def test_the_training_ran_out(tmp_path, server):
    decision = plan(tmp_path, server + TRAIN, TRAINER)
    assert decision['policy'].startswith('trl@'), decision
    assert {edit['knob']: edit['new'] for edit in decision['edits']} == {
        '--per_device_train_batch_size': '4', '--gradient_accumulation_steps': '4'}


@pytest.mark.parametrize('server', [SERVERS[0], SERVERS[2]])
def test_the_server_ran_out(tmp_path, server):
    decision = plan(tmp_path, server + TRAIN, SERVER)
    assert decision['policy'].startswith('vllm@'), decision
    assert all('per_device' not in edit['knob'] for edit in decision['edits']), decision
