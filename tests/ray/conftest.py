# SPDX-License-Identifier: Apache-2.0
"""One Ray cluster, head and worker, and one agent that watches it, for all tests here."""
import pytest

from ray_harness import BUILD, Munge, Ray, Service, ray_bin


@pytest.fixture(scope="session")
def ray_programs():
    if not (BUILD / "sbin/oomagent").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    return ray_bin()


@pytest.fixture(scope="session")
def ray(ray_programs):
    one = Ray(ray_programs)
    try:
        yield one.start()
    finally:
        one.remove()


@pytest.fixture(scope="session")
def service(ray):
    munge = Munge()
    one = Service(ray, munge=munge).start()
    try:
        yield one
    finally:
        one.stop()
        munge.stop()
