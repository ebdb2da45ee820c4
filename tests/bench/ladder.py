#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The scenario bench: fake trainers under the real oomrun, and what that was worth.

  ladder.py [--build DIR] [--only REGEX] [--jobs N] [--verbose] [--keep DIR] [--json FILE]

Prints the share of fixable jobs that finish, attempts per fix, simulated GPU-seconds lost, and
three counts that must be 0: identical retries (an attempt with the settings of one that ran out
of memory before), illegal retries (the framework refused the flags), wrong retries (after a
failure that was no memory). Exit 1 when a scenario does not end as it should.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'trainers'))
import harness  # noqa: E402


def judge(sc, code, records, said):
    """What one scenario shows: counts, and the reasons why it did not end as it should."""
    r = {
        'name': sc['name'],
        'expect': sc['expect'],
        'attempts': len(records),
        'code': code,
        'identical': 0,
        'illegal': 0,
        'wrong': 0,
        'lost': 0,
        'bad': [],
        'path': [],
    }
    seen = set()
    for i, rec in enumerate(records):
        key = harness.settings_key(rec)
        r['path'].append(
            '%s %s' % (rec.get('domain', ''), rec.get('phase', ''))
            if rec['status'] == 'oom'
            else rec['status']
        )
        if i and key in seen:
            r['identical'] += 1
        if i and rec['status'] == 'refused':
            r['illegal'] += 1
        if i and records[i - 1]['status'] != 'oom':
            r['wrong'] += 1
        if rec['status'] == 'oom':
            seen.add(key)
        if rec['status'] != 'ok':
            r['lost'] += rec['gpu_seconds']
    r['why'] = next(
        (line for line in reversed(said) if re.search('not retried|no retry|stopp|left', line)), ''
    )
    r['fixed'] = bool(records) and code == 0 and records[-1]['status'] == 'ok'
    if not records:
        r['bad'].append('the trainer never started')
        return r
    for what in ('identical', 'illegal', 'wrong'):
        if r[what]:
            r['bad'].append('%d %s' % (r[what], what))
    if sc['expect'] in ('fixed', 'ok') and not r['fixed']:
        r['bad'].append('not finished')
    if sc['expect'] == 'ok' and len(records) > 1:
        r['bad'].append('retried')
    if sc['expect'] in ('stop', 'plain'):
        if code == 0:
            r['bad'].append('exit 0 of a job that failed')
        if not r['why']:
            r['bad'].append('no reason given')
        elif sc.get('why') and not re.search(sc['why'], '\n'.join(said)):
            r['bad'].append('the reason is not /%s/' % sc['why'])
    return r


def run(sc, oomrun, keep):
    where = tempfile.mkdtemp(prefix='ladder-')
    try:
        harness.lay_out(sc, where)
        argv = [oomrun, '--db', os.path.join(where, '.oom.db')]
        if 'retries' in sc:
            argv += ['--max-retries', str(sc['retries'])]
        argv += ['--', 'bash', 'script.sh'] + sc.get('args', [])
        code = harness.run(argv, where, timeout=180)
        with open(os.path.join(where, 'out.log'), errors='replace') as f:
            said = [line.rstrip('\n') for line in f if line.startswith('oomrun:')]
        result = judge(sc, code, harness.records(where), said)
        result['said'] = said
        if keep and (result['bad'] or keep.endswith('/all')):
            target = os.path.join(keep, sc['name'])
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(where, target)
        return result
    finally:
        shutil.rmtree(where, ignore_errors=True)


def bench(build, only=None, jobs=2, verbose=False, keep=None, out=sys.stdout):
    oomrun = os.path.join(os.path.abspath(build), 'bin', 'oomrun')
    todo = harness.scenarios(only)
    results = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for r in pool.map(lambda sc: run(sc, oomrun, keep), todo):
            results.append(r)
            if verbose or r['bad']:
                print(
                    '%-4s %-32s %-5s %d attempts  %s%s'
                    % (
                        'FAIL' if r['bad'] else 'ok',
                        r['name'],
                        r['expect'],
                        r['attempts'],
                        ' > '.join(r['path']),
                        '   (%s)' % '; '.join(r['bad']) if r['bad'] else '',
                    ),
                    file=out,
                )
                if verbose:
                    for line in r['said']:
                        print('       ' + line, file=out)
                out.flush()
    return results


def summary(results, out=sys.stdout):
    fixable = [r for r in results if r['expect'] == 'fixed']
    fixed = [r for r in fixable if r['fixed']]
    retries = [r['attempts'] - 1 for r in fixed] or [0]
    attempts = [r['attempts'] for r in fixed] or [0]
    lines = [
        (
            'scenarios',
            '%d (%d fixable, %d out of reach, %d failures that are no memory, %d without failure)'
            % (
                len(results),
                len(fixable),
                *(sum(r['expect'] == e for r in results) for e in ('stop', 'plain', 'ok')),
            ),
        ),
        (
            'fixed',
            '%d of %d = %.1f %%'
            % (len(fixed), len(fixable), 100.0 * len(fixed) / max(1, len(fixable))),
        ),
        (
            'attempts per fix',
            'median %g, mean %.2f, most %d (retries: median %g)'
            % (
                statistics.median(attempts),
                statistics.mean(attempts),
                max(attempts),
                statistics.median(retries),
            ),
        ),
        (
            'GPU-seconds lost',
            '%d a fixed job (simulated)' % (sum(r['lost'] for r in fixed) / max(1, len(fixed))),
        ),
        ('identical retries', sum(r['identical'] for r in results)),
        ('illegal retries', sum(r['illegal'] for r in results)),
        ('wrong retries', sum(r['wrong'] for r in results)),
    ]
    for name, value in lines:
        print('%-18s %s' % (name, value), file=out)
    failed = sum(bool(r['bad']) for r in results)
    print('%d passed, %d failed' % (len(results) - failed, failed), file=out)
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--build', default=os.path.join(os.path.dirname(os.path.dirname(HERE)), 'build'))
    p.add_argument('--only', help='scenarios whose name matches')
    p.add_argument('--jobs', type=int, default=2)
    p.add_argument(
        '--verbose', action='store_true', help='a line for each scenario, and what oomrun said'
    )
    p.add_argument('--keep', help='directory that gets the scratch directories of failed scenarios')
    p.add_argument('--json', help='file that gets every result')
    a = p.parse_args()
    results = bench(a.build, a.only, a.jobs, a.verbose, a.keep)
    if a.json:
        with open(a.json, 'w') as f:
            json.dump(results, f, indent=1)
    sys.exit(1 if summary(results) else 0)


if __name__ == '__main__':
    main()
