# SPDX-License-Identifier: Apache-2.0
"""A dashboard behind TLS, with a certificate of its own authority that also wants one of ours."""
import os
import socket
import ssl
import subprocess
import threading

import pytest

from ray_harness import BUILD


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        target.close()


@pytest.fixture
def certificate(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                    "/CN=dashboard", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def tls_port(ray, certificate):
    """TLS in front of the real dashboard."""
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                plain, _ = listener.accept()
                client = context.wrap_socket(plain, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", ray.port))
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            threading.Thread(target=pump, args=(server, client), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def doctor(tmp_path, cluster):
    config = tmp_path / "oomretry.conf"
    config.write_text(f"head_socket: /nonexistent/head.sock\nray_clusters:\n  - {cluster}\n")
    done = subprocess.run([BUILD / "bin/oomctl", "doctor"], text=True, check=False,
                          env={**os.environ, "OOMRETRY_CONFIG": str(config), "HOME": str(tmp_path)},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return next(line for line in done.stdout.splitlines() if "Ray at" in line)


@pytest.mark.parametrize("words, good", [
    ("ca={cert} cert={cert} key={key}", True),
    ("tls=insecure cert={cert} key={key}", True),
    ("cert={cert} key={key}", False),      # nobody that is known vouches for the dashboard
    ("ca={cert}", False),                  # the dashboard does not know us
])
def test_certificates(tls_port, certificate, tmp_path, words, good):
    cert, key = certificate
    line = doctor(tmp_path, f"https://127.0.0.1:{tls_port} " + words.format(cert=cert, key=key))
    assert line.startswith("ok" if good else "BAD"), line
