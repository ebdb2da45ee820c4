# SPDX-License-Identifier: Apache-2.0
"""The watcher's pace is not that of the date. No Ray is needed: a dashboard that answers is."""
import http.server
import json
import os
import subprocess
import threading
import time
from pathlib import Path

from ray_harness import BUILD

ROOT = Path(__file__).resolve().parents[2]
AWAY_S = 5  # between two looks while something does not answer


class Dashboard(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append(time.monotonic())
        body = json.dumps({"session_name": "session_1"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_clock_that_is_set_back_does_not_stop_the_looks(tmp_path):
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "clock.so", ROOT / "tests/settable_clock.c"],
                   check=True)
    (tmp_path / "by").write_text("0")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dashboard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "oomretry.conf").write_text(
        f"head_socket: {tmp_path}/none.sock\nray_clusters: ['http://127.0.0.1:{server.server_port}']\n")
    agent = subprocess.Popen([BUILD / "sbin/oomagent", "--child", "ray", "--config", tmp_path / "oomretry.conf"],
                             env={**os.environ, "LD_PRELOAD": str(tmp_path / "clock.so"),
                                  "CLOCK_SET_BY": str(tmp_path / "by")}, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: Dashboard.asked, 20)
        (tmp_path / "by").write_text("-3600")
        before = len(Dashboard.asked)
        wait_until(lambda: len(Dashboard.asked) > before + 1, 6 * AWAY_S)
    finally:
        agent.kill()
        agent.wait()
        server.shutdown()
        server.server_close()


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)
