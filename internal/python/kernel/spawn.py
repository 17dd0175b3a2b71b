

# ---------------------------------------------------------------------------------------------------------------------
# What cells define, for processes that do not begin as copies of this one (spawn.py, between compat_shims.py and packages.py in one file)
#
# multiprocessing's "spawn" and "forkserver" start a new interpreter, which reads the program's file for its functions. Cells have none: in IPython such a pool waits for ever. Here the new
# interpreter gets the functions and classes of cells, with what they refer to, as cloudpickle writes them; what it cannot write raises an error where it is called.

SPAWNED = '''
import pickle
with open(__file__ + ".pickle", "rb") as file:
    defined, reasons = pickle.load(file)
globals().update(pickle.loads(defined))
del defined, file

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def absent(*args, **kwargs):
        raise RuntimeError("a process that was started anew does not have %s of the cells%s: define it in a module (%%%%writefile NAME.py) and import it, or use multiprocessing.get_context('fork')"
                           % (name, " (%s)" % reasons[name] if name in reasons else ""))
    return absent
'''


class Spawn:
    def __init__(self, kernel):
        self.kernel = kernel
        self.file = None

    def adapt(self, module):
        prepare = module.get_preparation_data

        def data(name):
            found = prepare(name)
            try:
                if sys.modules["__main__"] is self.kernel.shell.user_module and "init_main_from_path" not in found:
                    found["init_main_from_path"] = self.write()
            except Exception:
                pass  # as without us
            return found

        module.get_preparation_data = functools.wraps(prepare)(data)

    def write(self):
        """Writes what the cells define, as it is now, and returns the file that a new interpreter is to read first."""
        import pickle
        import tempfile

        if self.file is None:
            self.file = os.path.join(tempfile.mkdtemp(prefix="cells-"), "cells.py")
        wanted = {name: value for name, value in list(self.kernel.shell.user_ns.items())
                  if isinstance(value, (types.FunctionType, type)) and value.__module__ == "__main__"}
        text, reasons = pickled(wanted)
        for path, content in (self.file + ".pickle", pickle.dumps((text, reasons))), (self.file, SPAWNED.encode()):
            with open(path + ".new", "wb") as file:
                file.write(content)
            os.replace(path + ".new", path)  # another process may be reading it
        return self.file


def pickled(wanted):
    """A dictionary of functions and classes as a pickle, without those that cannot be one, and why these cannot."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    reasons = {}
    try:
        return cloudpickle.dumps(wanted), reasons
    except Exception:
        for name, value in wanted.items():
            try:
                cloudpickle.dumps(value)
            except Exception as failure:
                reasons[name] = ("%s: %s" % (type(failure).__name__, failure))[:300]
        return cloudpickle.dumps({name: value for name, value in wanted.items() if name not in reasons}), reasons
