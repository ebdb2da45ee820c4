# SPDX-License-Identifier: Apache-2.0
"""Scenarios: reading them, laying one out in a directory, running it once.

A scenario names a directory of scripts/ whose files hold @name@ or @name|default@; `set` gives
the values. `trainer` is what the fake trainer is told (size of model, card and host; a failure
that is no memory). `expect`: "fixed" (a retry must succeed), "stop" (memory, but nothing in reach
helps), "plain" (a failure that must not be retried), "ok" (nothing fails). `cure` are values of
`set` that are known to fit, which proves that "fixed" can be had.
"""

import glob
import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(HERE, 'bin')


def presets():
    with open(os.path.join(HERE, 'scenarios', 'presets.json')) as f:
        return json.load(f)


def scenarios(pattern=None):
    known = presets()
    out = []
    for path in sorted(glob.glob(os.path.join(HERE, 'scenarios', '*.json'))):
        if path.endswith('presets.json'):
            continue
        with open(path) as f:
            table = json.load(f)
        for sc in table:
            t = sc['trainer'] = dict(sc.get('trainer', {}))
            t.setdefault('framework', os.path.basename(path)[:-5])
            sc['framework'] = t['framework']
            if isinstance(t.get('model'), str):
                t['model'] = dict(known['models'][t['model']])
            elif isinstance(t.get('model'), dict) and 'like' in t['model']:
                t['model'] = dict(known['models'][t['model']['like']], **t['model'])
            if isinstance(t.get('gpu'), str):
                t['gpu_gib'] = known['gpus'][t.pop('gpu')]
            if not pattern or re.search(pattern, sc['name']):
                out.append(sc)
    return out


def fill(text, values):
    def one(m):
        if m.group(1) in values:
            return str(values[m.group(1)])
        if m.group(2) is None:
            raise KeyError(m.group(1))
        return m.group(2)

    return re.sub(r'@(\w+)(?:\|([^@\n]*))?@', one, text)


def lay_out(sc, where, more=None):
    """Writes the script, its side files and what the trainer is told."""
    values = dict(sc.get('set', {}), **(more or {}))
    # the model's own numbers are at hand in scripts: @m.layers@ is spelled @layers@
    model = sc['trainer'].get('model', {})
    for key in ('layers', 'hidden', 'heads', 'kv_heads', 'vocab'):
        values.setdefault(key, model.get(key, ''))
    source = os.path.join(HERE, 'scripts', sc['script'])
    for root, _, files in os.walk(source):
        for name in files:
            path = os.path.join(root, name)
            target = os.path.join(where, os.path.relpath(path, source))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(path) as f:
                text = fill(f.read(), values)
            with open(target, 'w') as f:
                f.write(text)
            shutil.copymode(path, target)
    with open(os.path.join(where, '.trainer.json'), 'w') as f:
        json.dump(sc['trainer'], f)
    for package in ['torch'] + sc.get('packages', []):
        place = os.path.join(where, '.venv/lib/python3.11/site-packages', package)
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, '__init__.py'), 'w'):
            pass


def environment(where, extra=None):
    keep = {
        k: v
        for k, v in os.environ.items()
        if k in ('LANG', 'TERM', 'TZ', 'LD_LIBRARY_PATH', 'ASAN_OPTIONS')
    }
    keep.update(
        PATH=BIN + ':/usr/local/bin:/usr/bin:/bin',
        HOME=where,
        USER='alice',
        TMPDIR=where,
        VIRTUAL_ENV=os.path.join(where, '.venv'),
        FAKE_TRAINER=os.path.join(where, '.trainer.json'),
        FAKE_TRAINER_RECORD=os.path.join(where, '.record.jsonl'),
    )
    keep.update(extra or {})
    return keep


def records(where):
    path = os.path.join(where, '.record.jsonl')
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def run(argv, where, extra=None, timeout=120, log='out.log'):
    """Exit code (negative: signal) of a command whose output goes to a file."""
    with open(os.path.join(where, log), 'w') as f:
        p = subprocess.Popen(
            argv,
            cwd=where,
            env=environment(where, extra),
            stdin=subprocess.DEVNULL,
            stdout=f,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return p.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            p.wait()
            return 'timeout'


def play(sc, where, more=None, extra=None):
    """One attempt without a supervisor."""
    lay_out(sc, where, more)
    return run(['bash', 'script.sh'] + sc.get('args', []), where, extra)


def settings_key(record):
    """What two attempts must share to be the same attempt."""
    env = {
        k: v
        for k, v in record['env'].items()
        if not k.startswith('CUDA_VISIBLE') and 'OOM' not in k
    }
    return json.dumps([record['framework'], record['settings'], env], sort_keys=True)
