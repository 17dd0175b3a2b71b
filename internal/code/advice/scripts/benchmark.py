# Has pyperf run programs and says how long each run took and how much memory it had.
import hashlib, subprocess, tempfile

EMPTY = "an empty program"  # its time is that of Python itself; no file has this name


def run_once(path, args, size):
    """What the program prints, as a hash, and how it ends."""
    try:
        done = subprocess.run([sys.executable, path] + args, stdin=subprocess.DEVNULL, capture_output=True, timeout=TASK["seconds"], env=surroundings(**sized(size)))
    except subprocess.TimeoutExpired:
        return None, "it runs for longer than " + str(TASK["seconds"]) + " s"
    if done.returncode:
        return None, f"it ends with exit code {done.returncode}\n" + tail(done.stderr)
    return hashlib.sha256(done.stdout).hexdigest(), ""


def sized(size):
    return {} if size is None else {"N": str(size), "COVE_N": str(size)}


def bench(label, command, size, runs):
    """The times of some runs of a command, and the memory that it had; None when pyperf failed."""
    pyperf = tool("pyperf", "pyperf")
    out = os.path.join(tempfile.mkdtemp(), "bench.json")
    inherit = "PYTHONPATH,PYTHONDONTWRITEBYTECODE,MPLBACKEND,N,COVE_N,HOME,PATH"
    call = [sys.executable, "-m", "pyperf", "command", "--quiet", "--output", out, "--name", label, "--processes", "1", "--values", str(runs), "--warmups", "1",
            "--loops", "1", "--inherit-environ", inherit, "--"] + command
    try:
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, timeout=TASK["seconds"] * (runs + 1), env=surroundings(**sized(size)))
    except subprocess.TimeoutExpired:
        emit("failed", why=label + " was stopped after " + str(TASK["seconds"] * (runs + 1)) + " s")
        return None
    if done.returncode:
        emit("failed", why=label + ": " + tail(done.stderr, 600))
        return None
    b = pyperf.Benchmark.load(out)
    memory = max((int(r.get_metadata().get("command_max_rss") or 0) for r in b.get_runs()), default=0)
    return [float(v) for v in b.get_values()], memory


def plot(series):
    """The growth of time with the size, on logarithmic axes; the host says what to draw."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    fig, ax = plt.subplots(figsize=(7, 4.5))
    for one in series:
        points = one["points"]
        ax.errorbar([p[0] for p in points], [p[1] for p in points], yerr=[p[2] for p in points], marker="o", capsize=3, label=one["label"])
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("size")
    ax.set_ylabel("seconds, without the start of Python")
    ax.set_title("How the time grows with the size")
    ax.grid(True, which="both", alpha=0.3)
    ax.legend()
    fig.tight_layout()
    os.makedirs(".cove-check", exist_ok=True)
    fig.savefig(".cove-check/growth.png", dpi=120)
    emit("plotted")


def benchmark():
    if TASK.get("series"):
        plot(TASK["series"])
        return
    if tool("pyperf", "pyperf") is None:
        return
    path = write_source()
    programs = [(TASK["file"], path)]
    if TASK["against"]:
        other = os.path.join(os.getcwd(), TASK["against"]["file"])
        with open(other, "w", encoding="utf-8", newline="") as f:
            f.write(TASK["against"]["text"])
        programs.append((TASK["against"]["file"], other))
    empty = os.path.join(tempfile.mkdtemp(), "empty.py")
    open(empty, "w").close()
    commands = []
    for size in TASK["sizes"] or [None]:
        printed = []
        for label, program in programs:
            args = ([str(size)] if size is not None else []) + TASK["args"]
            output, why = run_once(program, args, size)
            if why:
                emit("failed", why=label + (f" with size {size}" if size is not None else "") + ": " + why)
                return
            printed.append(output)
            commands.append((label, [sys.executable, program] + args, size))
        if len(printed) == 2:
            emit("compared", size=size or 0, same=printed[0] == printed[1])
    commands.append((EMPTY, [sys.executable, empty], None))
    rounds(commands)


def rounds(commands):
    """Measure in rounds, in each of which every command has its turn: what disturbs the machine for a while disturbs all of them."""
    most = min(3, TASK["runs"])
    times, memories = [[] for _ in commands], [0 for _ in commands]
    for n in range(most):
        runs = (n + 1) * TASK["runs"] // most - n * TASK["runs"] // most
        for i, (label, command, size) in enumerate(commands):
            measured = bench(label, command, size, runs)
            if measured is None:
                return
            times[i] += measured[0]
            memories[i] = max(memories[i], measured[1])
    for (label, _, size), values, memory in zip(commands, times, memories):
        emit("timed", program=label, size=size or 0, values=values[:100], memory=memory)


benchmark()
