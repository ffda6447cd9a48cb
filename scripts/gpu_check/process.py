"""One program, run to its end or to its time limit, with everything that it starts."""
import contextlib
import os
import signal
import subprocess
import time


class Ended:
    """How a program ended: `outcome` is "passed", "failed", "skipped" (77), "crashed" or
    "timed out"; `detail` says more where there is more."""

    def __init__(self, outcome, detail, output, seconds):
        self.outcome, self.detail = outcome, detail
        self.output, self.seconds = output, seconds


running = set()


def end_all(number, _frame):
    """A signal handler: ends what runs, and then this program."""
    for child in list(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    os._exit(128 + number)


def run(command, limit, environment=None):
    start = time.monotonic()

    def ended(outcome, detail="", output=b""):
        return Ended(outcome, detail, output.decode(errors="replace"),
                     round(time.monotonic() - start, 3))

    if limit <= 0:
        return ended("timed out", "there was no time left to start it")
    try:
        # A group of its own, so that what it started ends with it.
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})},
                                 start_new_session=True)
    except OSError as error:
        return ended("failed", str(error))
    running.add(child)
    try:
        output, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        return ended("timed out", f"after {limit:.0f} s", output)
    finally:
        running.discard(child)
    if child.returncode < 0:
        return ended("crashed", signal.Signals(-child.returncode).name, output)
    if child.returncode == 77:
        return ended("skipped", "exit status 77", output)
    if child.returncode != 0:
        return ended("failed", f"exit status {child.returncode}", output)
    return ended("passed", output=output)
