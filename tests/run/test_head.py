# SPDX-License-Identifier: Apache-2.0
"""A head and a node's agent without any scheduler: what they hold open, what strangers do to them."""
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import time

import pytest

from programs import BUILD

STRANGER = 54321  # no account of this machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='only root acts for others')


def wait_for(ready, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (value := ready()):
        assert time.monotonic() < deadline, f'{what}: not within {seconds} s'
        time.sleep(0.05)
    return value


def cpu_s(agent):
    """Of the agent's children, where the head is."""
    listed = subprocess.run(['ps', '-o', 'cputimes=', '--ppid', str(agent.process.pid)], capture_output=True, text=True,
                            check=True)
    return sum(int(line) for line in listed.stdout.split())


class Agent:
    def __init__(self, directory):
        self.directory = directory
        self.prefix = directory / 'prefix'
        for part in ('bin', 'sbin', 'libexec', 'share'):
            shutil.copytree(os.path.join(BUILD, part), self.prefix / part)
        directory.chmod(0o755)
        self.config = directory / 'oomretry.conf'
        self.config.write_text(f'head_socket: {directory}/run/head.sock\nnode_socket: {directory}/run/node.sock\n'
                               f'database: {directory}/db/oomretry.db\nscheduler: none\n')
        self.env = {'PATH': '/usr/bin:/bin', 'HOME': str(directory), 'OOMRETRY_CONFIG': str(self.config)}
        self.log = directory / 'agent.log'

    def start(self, seconds=30, **kwargs):
        self.process = subprocess.Popen([self.prefix / 'sbin/oomagent'], env=self.env, stderr=open(self.log, 'wb'),
                                        cwd='/', **kwargs)
        wait_for(lambda: 'head: serving' in self.log.read_text(), 'the head to serve', seconds)

    def replace_oomrun(self, text):
        program = self.prefix / 'bin/oomrun'
        program.rename(program.with_name('oomrun-real'))
        program.write_text(text)
        program.chmod(0o755)

    def leave_report(self, name, uid):
        """As a job does that found no head (agent/run/late.c)."""
        path = self.directory / 'run/late' / name
        path.write_text(json.dumps({'job': name, 'scheduler': 'none', 'token': name, 'late': True}))
        os.chown(path, uid, uid)
        return path


@pytest.fixture
def agent(tmp_path):
    # Strangers must be able to come here.
    for parent in (tmp_path, *tmp_path.parents):
        if os.stat(parent).st_uid == os.geteuid() and str(parent) not in ('/', '/tmp'):
            os.chmod(parent, os.stat(parent).st_mode | 0o011)
    agent = Agent(tmp_path)
    yield agent
    with contextlib.suppress(AttributeError, ProcessLookupError):
        agent.process.terminate()
        agent.process.wait(20)


# --- descriptors ----------------------------------------------------------------------------------

def test_the_command_inherits_no_connection_to_the_head(agent):
    agent.start()
    show = ['bash', '-c', 'ls -l /proc/self/fd']

    def kinds(*prefix):
        result = subprocess.run([*prefix, *show], env=agent.env, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, check=True)
        return [line.split(' -> ')[1].split(':')[0] for line in result.stdout.splitlines() if ' -> ' in line]

    assert 'socket' not in kinds(agent.prefix / 'bin/oomrun', '--')
    assert len(kinds(agent.prefix / 'bin/oomrun', '--')) == len(kinds())


def test_what_runs_as_an_owner_inherits_nothing_of_the_agent(agent):
    """A connection that root has opened would be answered as root's."""
    seen = agent.directory / 'seen'
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    agent.replace_oomrun(f'#!/bin/bash\nid -u > {seen}/uid\nls -l /proc/$$/fd > {seen}/fds.new\n'
                         f'mv {seen}/fds.new {seen}/fds\nrm -f "$2"\n')
    agent.start()
    agent.leave_report('1', STRANGER)
    wait_for((seen / 'fds').exists, 'the report to be handed in')
    assert (seen / 'uid').read_text() == f'{STRANGER}\n'
    assert 'socket' not in (seen / 'fds').read_text()


# --- strangers ------------------------------------------------------------------------------------

def test_an_owner_who_stops_his_process_stops_nobody_else(agent):
    handed_in = agent.directory / 'handed-in'
    agent.replace_oomrun(f'#!/bin/bash\n[ "$(id -u)" = {STRANGER} ] && kill -STOP $$\n'
                         f'id -u >> {handed_in}\nrm -f "$2"\n')
    agent.start()
    for i in range(5):
        agent.leave_report(f'{i}', STRANGER)
    agent.leave_report('5', 0)
    wait_for(lambda: handed_in.exists() and handed_in.read_text(), 'the report of somebody else to be handed in', 60)
    assert handed_in.read_text() == '0\n'
    assert 'does not end and is killed' in agent.log.read_text()


def test_connections_that_nobody_closes(agent):
    """Who holds connections open makes others wait, and neither fills the log nor takes a core."""
    agent.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)))
    held = []
    for _ in range(80):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].connect(str(agent.directory / 'run/head.sock'))
    wait_for(lambda: 'connections wait until others are closed' in agent.log.read_text(), 'a word about that')
    before = cpu_s(agent)
    time.sleep(2)
    assert cpu_s(agent) - before < 1
    assert agent.log.stat().st_size < 4000
    for connection in held:
        connection.close()
    done = subprocess.run([agent.prefix / 'bin/oomctl', 'history'], env=agent.env, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('where', ['127.0.0.1:70000', '127.0.0.1:', ':80', '127.0.0.1:80x'])
def test_ports_that_are_none(agent, where):
    """70000 was taken for port 4464."""
    agent.config.write_text(agent.config.read_text() + f'head_listen: "{where}"\n')
    with pytest.raises(AssertionError):
        agent.start(seconds=2)
    assert f'head_listen: "{where}" is not ADDRESS:PORT' in agent.log.read_text()
