# What every script of this folder begins with. TASK is what the host asks for; each line of output is one JSON object.
import importlib, json, os, sys


def emit(kind, **values):
    print(json.dumps({"kind": kind, **values}), flush=True)


def finding(rule, severity, line, column, message, better=""):
    emit("finding", rule=rule, severity=severity, line=line, column=column, message=message[:1000], better=better[:1000])


def write_source():
    """Put the code that is looked at into the workspace and return its path."""
    path = os.path.join(os.getcwd(), TASK["file"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(TASK["text"])
    return path


def surroundings(**more):
    """The environment of processes that find the same packages as this one."""
    folders = [p for p in sys.path if p] + [os.getcwd()]  # in this order, so that a random.py of the user's does not take the place of Python's own for tools
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg", **more}


def tail(data, most=2000):
    """The end of what a process wrote."""
    return data[-most:].decode("utf-8", "replace")


def tool(module, package):
    """A module that the session installs when it can; None, and a word to the host, where it could not."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        emit("missing", package=package, why=str(e)[:300])
        return None
