# Runs the program under Scalene and says what each of its lines took.
import ctypes, select, signal, subprocess, tempfile, time

BEGINS, WRITES = TASK["begins"], TASK["writes"]  # seconds that the profiler may take until it runs the program, and for its result


def watch(path):
    """Return a descriptor that can be read once somebody has opened the file, or None where the system has no inotify."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(path), 0x20) < 0:  # IN_OPEN
        os.close(fd)
        return None
    return fd


def wait_begun(program, opened):
    """Wait until the profiler has opened the program, which it does right before it runs it: its own start is not the program's time."""
    end = time.monotonic() + BEGINS
    while opened is not None and program.poll() is None and time.monotonic() < end:
        if select.select([opened], [], [], 0.05)[0]:
            return


def profile():
    path = write_source()
    if tool("scalene", "scalene") is None:
        return
    folder = tempfile.mkdtemp()
    outcome, said = os.path.join(folder, "profile.json"), open(os.path.join(folder, "output"), "w+b")
    command = [sys.executable, "-m", "scalene", "run", "--outfile", outcome, path] + (["---"] + TASK["args"] if TASK["args"] else [])
    code, stopped, opened = None, False, watch(path)
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=surroundings(PYTHONSAFEPATH="1"), start_new_session=True)
    wait_begun(program, opened)
    if opened is not None:
        os.close(opened)
    start = time.perf_counter()
    try:
        code = program.wait(TASK["seconds"])
    except subprocess.TimeoutExpired:
        emit("note", text=f"the program was stopped after {TASK['seconds']} s, as Ctrl-C does")
        stopped = True
        os.killpg(program.pid, signal.SIGINT)  # so that the profiler, which is a process below this one, writes what it knows
        try:
            program.wait(WRITES)
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
    if "\nScalene error: received signal" in "\n" + output:  # the profile is written after the program's end, so that the signal's code is not the program's
        emit("note", text="the profiler itself was ended by a signal after it had written the profile; the program's exit code is not known")
        code = None
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
    emit("profile", seconds=elapsed, peak=int(float(data.get("max_footprint_mb") or 0) * (1 << 20)), exit=code, output="" if stopped or code is None else output, measured=True)


profile()
