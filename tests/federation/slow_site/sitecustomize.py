"""Put before everything else in the PYTHONPATH of one site: its process of a job begins 15 seconds late."""

from __future__ import annotations

import sys
import time

SECONDS = 15.0

if any("worker_process" in word for word in sys.orig_argv):
    time.sleep(SECONDS)
