"""Draws what `cove-bench --rows density --json` found out: the host's memory and the time of an execution, by the number of live sessions.

    bin/cove-bench --rows density --json > density.json
    cove run -f density.json docs/density.py        # leaves cove-out/density.svg
"""

import json

import matplotlib.pyplot as plt

report = json.load(open("density.json"))
figures = {row["id"]: {r["subject"]: r for r in row["results"]} for row in report["rows"]}
steps = sorted(int(name.split("-")[1]) for name in figures if name.startswith("density-") and name.endswith("-memory"))
titles = {"cove": "cove (gVisor)", "docker-kept": "docker run (namespaces), a bare Python", "gateway": "Jupyter kernel gateway (no isolation)"}

plt.rcParams["svg.fonttype"] = "none"
figure, (memory, latency) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for subject, title in titles.items():
    for axes, name, factor in ((memory, "density-%d-memory", 1e-3), (latency, "density-%d", 1)):
        found = [(n, figures[name % n][subject]) for n in steps if subject in figures[name % n]]
        points = [(n, r["stats"]["median"] * factor) for n, r in found if r["samples"]]
        axes.plot(*zip(*points), marker="o", label=title) if points else None
memory.set(xlabel="live sessions with pandas and matplotlib imported", ylabel="host memory, GB", xlim=0, ylim=0)
latency.set(xlabel="live sessions", ylabel="1+1 in one of them, ms (median)", xlim=0, ylim=0)
for axes in (memory, latency):
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
memory.legend(frameon=False)
machine = report["machine"]
figure.suptitle("%d cores, %.0f GB; cove %s" % (machine["cores"], machine["memory_bytes"] / 1e9, report["version"]), fontsize=9, color="gray")
figure.savefig("density.svg", metadata={"Date": None})
