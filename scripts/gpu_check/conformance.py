"""The conformance suite, each case in a process of its own, because some lose their context. A case
writes its own line of the observations; one whose process died gets its line from here."""
import concurrent.futures
import json
import os
import tempfile
import time

from . import process


def whole(text):
    """What a line says; None for one that its program did not live to finish."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def list_cases(program):
    """The cases' names, in the program's order. Raises RuntimeError where there are none."""
    listed = process.run([program, "--list-test-cases", "--no-intro", "--no-version"], 60)
    names = [line for line in listed.output.splitlines()
             if line and not line.startswith(("[doctest]", "==="))]
    if listed.outcome != "passed" or not names:
        raise RuntimeError(f"{program} lists no cases ({listed.outcome} {listed.detail})")
    return names


def run_case(program, name, limit, environment):
    """The line of one case, and what the program printed."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "observations")
        # For doctest, "*" and "?" match anything and a comma begins another filter.
        ended = process.run([program, "--test-case=" + name.replace(",", "\\,")], limit,
                            {**environment, "REFRAIN_OBSERVATIONS": file})
        line = None
        if os.path.exists(file):
            with open(file, encoding="utf-8", errors="replace") as lines:
                found = [one for one in map(whole, lines) if one is not None]
            # A filter may match more than it says: only this case counts.
            line = next((one for one in found if one["name"] == name), None)
    if line is None:
        line = {"case": name.split(":", 1)[0], "name": name,
                "source": name[name.rfind("["):] if "[" in name else "",
                "outcome": {"passed": "no line", "skipped": "no driver"}.get(ended.outcome,
                                                                             ended.outcome),
                "observations": [], "seconds": ended.seconds}
    if line["outcome"] == "no driver":
        ended.detail = ended.output.strip()
    # A case that passed in a process that then died has not passed.
    if ended.outcome in ("crashed", "timed out") or (
            line["outcome"] == "passed" and ended.outcome != "passed"):
        line["outcome"] = ended.outcome
    if ended.detail and line["outcome"] not in ("passed", "skipped"):
        line["detail"] = ended.detail
    return line, ended.output


def run_all(program, names, jobs, case_limit, deadline, environment, log):
    """The lines of all cases, in order. One that went wrong among others is run again alone, so that
    the reader sees whether company mattered."""

    def one(name):
        return run_case(program, name, min(case_limit, deadline - time.monotonic()), environment)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(one, names))
    lines = []
    for name, (line, output) in zip(names, done):
        if line["outcome"] not in ("passed", "skipped"):
            log(f"--- {line['outcome']}: {name}\n{output}")
            if deadline - time.monotonic() > case_limit:
                line["outcome_alone"] = one(name)[0]["outcome"]
        lines.append(line)
    return lines


def count(lines):
    """How many cases had each outcome."""
    outcomes = {}
    for line in lines:
        outcomes[line["outcome"]] = outcomes.get(line["outcome"], 0) + 1
    return outcomes


def disagreements(real, simulated):
    """Where the simulation did not do what the GPU did: outcomes, and what was observed."""
    there = {line["name"]: line for line in simulated}
    found = []
    for line in real:
        other = there.get(line["name"])
        if other is None or "skipped" in (line["outcome"], other["outcome"]):
            continue
        if line["outcome"] != other["outcome"]:
            found.append({"case": line["case"], "what": "outcome", "gpu": line["outcome"],
                          "simulation": other["outcome"]})
        seen = {one["what"]: one["value"] for one in other["observations"]}
        for one in line["observations"]:
            if seen.get(one["what"]) != one["value"]:
                found.append({"case": line["case"], "what": one["what"], "gpu": one["value"],
                              "simulation": seen.get(one["what"])})
    return found
