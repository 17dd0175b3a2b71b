# Runs the program under Scalene and says what each of its lines took.
import signal, subprocess, tempfile, time


def profile():
    path = write_source()
    if tool("scalene", "scalene") is None:
        return
    folder = tempfile.mkdtemp()
    outcome, said = os.path.join(folder, "profile.json"), open(os.path.join(folder, "output"), "w+b")
    command = [sys.executable, "-m", "scalene", "run", "--outfile", outcome, path] + (["---"] + TASK["args"] if TASK["args"] else [])
    start = time.perf_counter()
    code, stopped = None, False
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=surroundings(PYTHONSAFEPATH="1"), start_new_session=True)
    try:
        code = program.wait(TASK["seconds"])
    except subprocess.TimeoutExpired:
        emit("note", text=f"the program was stopped after {TASK['seconds']} s, as Ctrl-C does")
        stopped = True
        os.killpg(program.pid, signal.SIGINT)  # so that the profiler, which is a process below this one, writes what it knows
        try:
            program.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    took = time.perf_counter() - start
    said.seek(max(0, said.seek(0, 2) - 2000))
    own = ("Scalene: profile saved to " + outcome, "To view in browser: ", "To view in terminal: ")
    output = "\n".join(line for line in tail(said.read()).splitlines() if not line.strip().startswith(own)).strip("\n")
    try:
        with open(outcome, encoding="utf-8") as f:
            data = json.load(f)
    except (OSError, ValueError):
        emit("profile", seconds=took, peak=0, exit=code, output="" if stopped else output, measured=False)
        return
    elapsed = float(data.get("elapsed_time_sec") or took)
    for name, file in data.get("files", {}).items():
        own = os.path.realpath(name) == os.path.realpath(path)
        where = "" if own else os.path.relpath(os.path.realpath(name), os.path.realpath(os.getcwd()))
        if where.startswith(".."):
            continue
        for line in file.get("lines", [])[:20000]:
            python, native, system = (max(0.0, float(line.get(k) or 0)) for k in ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent"))
            peak = max(0.0, float(line.get("n_peak_mb") or 0))
            if python + native + system >= 0.1 or peak >= 0.1:
                emit("line", file=where, text="" if own else str(line.get("line") or "").strip()[:200], line=line["lineno"], python=python * elapsed / 100, native=native * elapsed / 100, system=system * elapsed / 100, peak=int(peak * (1 << 20)))
    emit("profile", seconds=elapsed, peak=int(float(data.get("max_footprint_mb") or 0) * (1 << 20)), exit=code, output="" if stopped else output, measured=True)


profile()
