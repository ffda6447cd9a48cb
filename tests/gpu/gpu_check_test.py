"""scripts/gpu-check's own rules, over stand-ins for the programs that it runs: what is said of a case
that passes, fails, dies or hangs, and where a real driver and the simulation differ."""
import os
import stat
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from gpu_check import conformance, driver, process  # noqa: E402

# As the conformance suite: lists its cases, runs one, appends its line, and behaves as the case's name says.
STAND_IN = r"""#!/usr/bin/env python3
import json, os, signal, sys, time
NAMES = ["OK-01: passes [H]", "BAD-01: fails [N]", "DIE-01: dies, at once [?]", "HANG-01: hangs [G]",
         "SKIP-01: cannot run here [H]", "LATE-01: passes and then dies [P]", "MUTE-01: says nothing [H]",
         "NONE-01: finds no driver [H]"]
if "--list-test-cases" in sys.argv:
    print("[doctest] listing all test case names")
    print("=" * 79)
    print("\n".join(NAMES))
    print("[doctest] unskipped test cases passing the current filters: 8")
    sys.exit(0)
name = sys.argv[1].removeprefix("--test-case=").replace("\\,", ",")
assert name in NAMES
def line(outcome):
    with open(os.environ["REFRAIN_OBSERVATIONS"], "a") as file:
        file.write(json.dumps({"case": name.split(":")[0], "name": name, "source": name[-3:],
                               "outcome": outcome, "observations": [{"what": "driver",
                               "value": os.environ["REFRAIN_CUDA_DRIVER"]}], "seconds": 0.01}) + "\n")
if name.startswith("OK"): line("passed")
if name.startswith("SKIP"): line("skipped")
if name.startswith("BAD"): line("failed"); sys.exit(1)
if name.startswith("DIE"): os.kill(os.getpid(), signal.SIGSEGV)
if name.startswith("HANG"): time.sleep(60)
if name.startswith("NONE"): print("skipped: too old"); sys.exit(77)
if name.startswith("LATE"): line("passed"); os.abort()
"""


class Conformance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "conformance_test")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(STAND_IN)
        os.chmod(self.program, stat.S_IRWXU)

    def lines(self, limit=3.0):
        names = conformance.list_cases(self.program)
        self.logged = []
        lines = conformance.run_all(self.program, names, 4, limit, time.monotonic() + 600,
                                    {"REFRAIN_CUDA_DRIVER": "a driver"}, self.logged.append)
        self.assertEqual([line["name"] for line in lines], names)
        return {line["case"]: line for line in lines}

    def test_every_case_has_one_line_that_says_what_became_of_it(self):
        lines = self.lines()
        outcomes = {case: line["outcome"] for case, line in lines.items()}
        self.assertEqual(outcomes, {"OK-01": "passed", "BAD-01": "failed", "DIE-01": "crashed",
                                    "HANG-01": "timed out", "SKIP-01": "skipped",
                                    "LATE-01": "crashed", "MUTE-01": "no line",
                                    "NONE-01": "no driver"})
        self.assertEqual(lines["NONE-01"]["detail"], "skipped: too old")
        self.assertEqual(lines["DIE-01"]["detail"], "SIGSEGV")
        self.assertEqual(lines["DIE-01"]["source"], "[?]")
        self.assertEqual(lines["OK-01"]["observations"], [{"what": "driver", "value": "a driver"}])
        # What went wrong was run again alone, and its output kept.
        self.assertEqual(lines["BAD-01"]["outcome_alone"], "failed")
        self.assertNotIn("outcome_alone", lines["OK-01"])
        self.assertEqual(len(self.logged), 6)

    def test_nothing_starts_when_the_time_is_over(self):
        line, _ = conformance.run_case(self.program, "OK-01: passes [H]", -1, {})
        self.assertEqual(line["outcome"], "timed out")

    def test_a_program_without_cases_is_an_error(self):
        with self.assertRaises(RuntimeError):
            conformance.list_cases("/bin/true")

    def test_a_simulation_that_did_something_else_is_told(self):
        def line(case, outcome, **seen):
            return {"case": case, "name": case, "outcome": outcome,
                    "observations": [{"what": what, "value": value} for what, value in seen.items()]}

        real = [line("A", "passed", code="1"), line("B", "failed"), line("C", "skipped"),
                line("D", "passed", code="4", count="2")]
        simulated = [line("A", "passed", code="1"), line("B", "passed"), line("C", "passed"),
                     line("D", "passed", code="5", count="2")]
        self.assertEqual(conformance.disagreements(real, simulated), [
            {"case": "B", "what": "outcome", "gpu": "failed", "simulation": "passed"},
            {"case": "D", "what": "code", "gpu": "4", "simulation": "5"}])


class Processes(unittest.TestCase):
    def test_what_a_program_started_ends_with_it(self):
        with tempfile.NamedTemporaryFile() as file:
            ended = process.run(["sh", "-c", f"(sleep 2; echo late > {file.name}) & sleep 60"], 0.5)
            self.assertEqual(ended.outcome, "timed out")
            self.assertLess(ended.seconds, 2)
            time.sleep(2.5)
            self.assertEqual(os.path.getsize(file.name), 0)

    def test_a_program_that_is_not_there_is_a_failure(self):
        self.assertEqual(process.run(["/no/such/program"], 5).outcome, "failed")

    def test_no_driver_is_said_and_so_is_a_library_that_is_none(self):
        for library, word in (("/no/such/library.so", "no CUDA driver"), ("libc.so.6", "exports no")):
            with self.assertRaisesRegex(driver.NoDriver, word):
                driver.probe(library)


if __name__ == "__main__":
    unittest.main()
