# SPDX-License-Identifier: Apache-2.0
"""What is tested here, as it was built."""
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('OOMRETRY_BUILD', os.path.join(ROOT, 'build'))
OOMRUN = os.path.join(BUILD, 'bin', 'oomrun')
OOMCTL = os.path.join(BUILD, 'bin', 'oomctl')
