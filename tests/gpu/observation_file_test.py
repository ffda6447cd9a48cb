"""What scripts/gpu-check left over the simulation: one file that says it was a simulation, with cases,
parts and timings in it."""
import glob
import json
import os
import sys

files = glob.glob(os.path.join(sys.argv[1], "gpu-observations-*.json"))
assert len(files) == 1, files
with open(files[0], encoding="utf-8") as file:
    seen = json.load(file)

assert seen["simulated"] is True
assert "simulat" in seen["gpu"]["name"].lower(), seen["gpu"]
assert "simulat" in os.path.basename(files[0]), files[0]
cases = seen["conformance"]["cases"]
assert len(cases) >= 5
for case in cases:
    assert case["outcome"] in ("passed", "skipped"), case
    assert case["source"] in ("[H]", "[G]", "[N]", "[X]", "[P]", "[?]"), case
timings = seen["driver_timings"]["timings"]
assert any(row["what"] == "graph launch" and row["shape"] == "straight 1000" for row in timings)
assert seen["driver_timings"]["simulated"] is True
assert seen["driver_timings"]["not_measured"] == []
outcomes = {part["name"]: part["outcome"] for part in seen["parts"]}
assert outcomes["conformance"] == outcomes["driver_timings"] == "passed", outcomes
