# Has Ruff look at the code, and mypy where the code has types.
import subprocess, tempfile

SELECT = "F,E711,E712,E713,E714,E721,E722,E9,W605,B,PLE,PLW0127,PLW0129,PLW0711,PLW1508,PLW1510,C901,ASYNC,NPY,RUF006,RUF013,RUF015,RUF016,S102,S307,S602,S605"
# What a notebook shows at the end of a cell looks useless, and a cell may await.
NOTEBOOK = "B015,B018,F704,PLE1142"
# Matters of taste and habits of libraries, such as a name that a loop does not use (B007) and zip() without strict (B905); and what follows from `import *` (F405), which is
# one note by itself.
QUIET = "B007,B008,B009,B010,B011,B024,B026,B028,B904,B905,F405"
NOTES = ("F401", "F403", "E721", "PLW1510", "F841", "F541", "C901", "RUF015", "E711", "E712", "E713", "E714", "RUF013", "NPY002")
COMPLEX = 10


def severity(rule):
    if rule.startswith(NOTES):
        return "note"
    if rule == "PLE0704":  # a bare raise may be in a function that handlers call
        return "warning"
    return "error" if rule.startswith(("F5", "F7", "F82", "E9", "PLE", "invalid-syntax", "F63")) else "warning"


def ruff(path):
    module = tool("ruff", "ruff")
    if module is None:
        return
    try:
        program = module.find_ruff_bin()
    except (OSError, AttributeError) as e:
        emit("note", text="Ruff was installed without its program: " + str(e)[:300])
        return
    ignored = QUIET + ("," + NOTEBOOK if TASK["notebook"] else "")
    command = [program, "check", "--isolated", "--no-cache", "--exit-zero", "--output-format", "json-lines", "--select", SELECT, "--ignore", ignored,
               "--config", f"lint.mccabe.max-complexity={COMPLEX}", "--config", "builtins=['display', 'get_ipython']",
               "--target-version", f"py3{sys.version_info[1]}", path]
    done = subprocess.run(command, capture_output=True, timeout=TASK["seconds"], cwd=os.getcwd())
    if done.returncode != 0:
        emit("note", text="Ruff failed: " + tail(done.stderr, 300))
        return
    for line in done.stdout.splitlines()[:2000]:
        d = json.loads(line)
        rule, at = d.get("code") or d.get("name") or "invalid-syntax", d.get("location") or {}
        fix = d.get("fix") or {}
        finding(rule, severity(rule), at.get("row", 1), at.get("column", 1), d.get("message", ""), fix.get("message") or "")


def types(path):
    if tool("mypy", "mypy") is None:
        return
    # What is imported counts as of any type: the types of most libraries are not there, and reading their code takes minutes.
    command = [sys.executable, "-m", "mypy", "--follow-imports=skip", "--ignore-missing-imports", "--allow-redefinition", "--local-partial-types",
               "--no-error-summary", "--no-incremental", "--cache-dir=/dev/null", "--output=json", "--config-file=",
               "--disable-error-code=var-annotated", "--disable-error-code=name-defined", "--disable-error-code=syntax",
               "--disable-error-code=import-not-found", "--disable-error-code=import-untyped", "--disable-error-code=no-redef", "--disable-error-code=valid-type",
               "--disable-error-code=overload-cannot-match", path]
    done = subprocess.run(command, capture_output=True, timeout=TASK["seconds"], env=surroundings(), cwd=os.getcwd())
    if done.returncode not in (0, 1):
        emit("note", text="mypy failed: " + tail(done.stderr or done.stdout, 300))
        return
    for line in done.stdout.splitlines()[:2000]:
        try:
            d = json.loads(line)
        except ValueError:
            continue
        if d.get("severity") == "error":
            finding("type-" + (d.get("code") or "error"), "error", d.get("line", 1), d.get("column", 0) + 1, d.get("message", ""), d.get("hint") or "")


def quality():
    # Not in the workspace, and not by its name: a random.py there would take the place of Python's own for the tools.
    path = os.path.join(tempfile.mkdtemp(), "program.py")
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(TASK["text"])
    for check in [ruff] + ([types] if TASK["types"] else []):
        try:
            check(path)
        except subprocess.TimeoutExpired:
            emit("note", text=f"the check {check.__name__} was stopped after {TASK['seconds']} s")


quality()
