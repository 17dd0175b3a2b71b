"""What code imports, and whether it can do without."""

import posix
import sys

import _ast
from _ast import AST, Attribute, BoolOp, Call, Compare, Constant, Expr, Import, ImportFrom, Name, Raise, Return

ONLY_AST = 0x400  # of compile()
MOST, FEW = 1000, 100  # of the lists in a reply
LONGEST, LONGEST_NAME = 4000, 200  # characters of the strings in a reply
INSTALL = "_cove_install_"  # stands where a cell's shell line installs something

STDLIB = getattr(sys, "stdlib_module_names", frozenset(sys.builtin_module_names))
NAMESPACES = {"google", "azure", "aws", "ruamel", "zope", "jaraco", "backports", "opentelemetry", "sphinxcontrib", "airflow", "databricks", "snowflake"}
IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError"}
ALL_ERRORS = {"Exception", "BaseException"}
ENDS = {"exit", "quit", "sys.exit", "os._exit", "os.abort"}
SAYS = {"print", "display", "traceback.print_exc", "warnings.warn"}
TOOLS_TO_TELL = {"sys", "os", "logging", "traceback", "warnings", "subprocess"}
SAYING = {"print", "write", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "echo", "secho"}


def children(node):
    out = []
    for field, value in vars(node).items():
        if type(value) is list:
            out += [v for v in value if isinstance(v, AST)]
        elif isinstance(value, AST) and field != "ctx":
            out.append(value)
    return out


def below(*nodes):
    """Yields nodes and all below them."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)


def project(module):
    """The part of a module's name that tells whose it is."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in NAMESPACES else 1])


def count(tree):
    """How often each name stands below a node."""
    out = {}
    for node in below(tree):
        if isinstance(node, Name):
            out[node.id] = out.get(node.id, 0) + 1
    return out


class Context:
    """Where a statement stands: optional when the code goes on without its imports; only for want of the modules in unless; below a condition."""

    def __init__(self, optional=False, unless=(), conditional=False):
        self.optional, self.unless, self.conditional = optional, unless, conditional

    def but(self, **changes):
        return Context(**{**self.__dict__, **changes})


class Finder(Calls):
    def __init__(self, text):
        self.text = text
        self.installing = installs(text)  # else no command is worth a look, whatever its strings are made of
        self.starting = any(program in text for program in PROGRAMS)
        self.imports = []  # module, names, context
        self.aliases = {}  # name -> what it means, dotted
        self.calls = []  # node, context
        self.strings = []
        self.lists = {}  # name -> strings that it may have
        self.functions = {}  # name -> parameters
        self.probed = set()  # roots that the code looks for
        self.shell, self.argv, self.needs = [], [], {}
        self.tree = None
        self.uses = None  # name -> how often it stands in the code
        self.visits = {
            Import: self.see_import, ImportFrom: self.see_from, Call: self.see_call, Constant: self.see_constant, _ast.Assign: self.see_assign,
            _ast.Try: self.see_try, _ast.If: self.see_if, _ast.IfExp: self.see_if, _ast.With: self.see_with, _ast.AsyncWith: self.see_with,
            _ast.For: self.see_for, _ast.FunctionDef: self.see_function, _ast.AsyncFunctionDef: self.see_function,
        }
        if hasattr(_ast, "TryStar"):
            self.visits[_ast.TryStar] = self.see_try

    def find(self, tree):
        self.tree = tree
        stack = [(tree, Context())]
        while stack:
            node, context = stack.pop()
            visit = self.visits.get(type(node))
            if visit is None:
                stack += [(c, context) for c in reversed(children(node))]
            else:
                stack += reversed(visit(node, context) or [])
        self.roots = {root(m) for m, _, _ in self.imports}
        self.bound = self.aliases.keys() | self.roots
        for node, context in self.calls:
            self.judge(node, context)

    # Names

    def dotted(self, node):
        """What an expression means, as far as names and imports tell: "pandas.read_excel", "?.to_excel" for a method of something."""
        parts = []
        while True:
            if isinstance(node, Attribute):
                parts.append(node.attr)
                node = node.value
                continue
            if isinstance(node, Call) and isinstance(node.func, Name) and node.func.id == "get_ipython":
                node = node.func
            parts.append(self.aliases.get(node.id, node.id) if isinstance(node, Name) else "?")
            return ".".join(reversed(parts))

    def add(self, module, names, context):
        if len(module) <= LONGEST_NAME and all(part.isidentifier() for part in module.split(".")):
            self.imports.append((module, [n for n in names if len(n) <= LONGEST_NAME], context))
            if root(module) in STARTERS:
                self.needs.setdefault((PROGRAMS[STARTERS[root(module)]], root(module)), context)

    # Statements

    def see_import(self, node, context):
        for alias in node.names:
            self.add(alias.name, [], context)
            if alias.asname:
                self.aliases[alias.asname] = alias.name
            else:
                self.aliases[root(alias.name)] = root(alias.name)

    def see_from(self, node, context):
        if node.level or not node.module:
            for alias in node.names:
                self.aliases.setdefault(alias.asname or alias.name, "?")
            return
        self.add(node.module, [a.name for a in node.names if a.name != "*"], context)
        for alias in node.names:
            self.aliases[alias.asname or alias.name] = node.module + "." + alias.name

    def see_assign(self, node, context):
        if len(node.targets) == 1 and isinstance(node.targets[0], Name):
            name, value = node.targets[0].id, node.value
            if isinstance(value, (Name, Attribute)):
                meaning = self.dotted(value)
                if meaning in IMPORTERS or meaning in SHELLS or meaning in PROBES:
                    self.aliases[name] = meaning
            self.remember(name, value)
        return [(node.value, context)] + [(t, context) for t in node.targets]

    def see_for(self, node, context):
        if isinstance(node.target, Name):
            self.remember(node.target.id, node.iter)
        return [(c, context) for c in children(node)]

    def remember(self, name, value):
        texts = [joined(value)] if self.starting and isinstance(value, _ast.JoinedStr) else self.texts(value)
        self.lists[name] = (self.lists.get(name, []) + texts)[:FEW]

    def see_function(self, node, context):
        self.functions[node.name] = [a.arg for a in node.args.args]
        return [(c, context.but(conditional=True)) for c in children(node)]

    def see_constant(self, node, context):
        if isinstance(node.value, str) and len(node.value) < LONGEST:
            self.strings.append(node.value)

    def see_call(self, node, context):
        self.calls.append((node, context))
        return [(c, context) for c in children(node)]

    def see_if(self, node, context):
        known = self.static(node.test)
        inside = context.but(conditional=True)
        then, other = (([v] if isinstance(v, AST) else v) for v in (node.body, node.orelse))
        out = [(node.test, context)]
        if known is not False:
            out += [(c, context if known else inside) for c in then]
        if known is not True:
            out += [(c, context if known is False else inside) for c in other]
        return out

    def see_with(self, node, context):
        inside = context
        for item in node.items:
            call = item.context_expr
            if isinstance(call, Call) and self.dotted(call.func) in ("contextlib.suppress", "suppress"):
                caught = {self.dotted(a).rpartition(".")[2] for a in call.args}
                if caught & IMPORT_ERRORS or caught & ALL_ERRORS and not self.works(node.body):
                    inside = context.but(optional=True)
        return [(i, context) for i in node.items] + [(c, inside) for c in node.body]

    # try and except

    def see_try(self, node, context):
        out = []
        wanted = [m for m in self.modules(node.body) if len(m) <= LONGEST_NAME]
        guard = next((h for h in node.handlers if self.caught(h)), None) if wanted else None
        inside = context
        if guard is not None and self.goes_on(node, guard):
            inside = context.but(optional=True)
        out += [(c, inside) for c in node.body]
        for handler in node.handlers:
            other = context
            if handler is guard:
                other = context.but(unless=(context.unless + tuple(wanted))[:10])
                if all(root(m) in STDLIB for m in wanted):
                    other = other.but(optional=True)
            out += [(c, other) for c in handler.body]
        out += [(c, inside) for c in node.orelse]
        return out + [(c, context) for c in node.finalbody]

    def caught(self, handler):
        """The errors of failed imports that a handler catches."""
        if handler.type is None:
            return ALL_ERRORS
        kinds = handler.type.elts if isinstance(handler.type, _ast.Tuple) else [handler.type]
        return {self.dotted(k).rpartition(".")[2] for k in kinds} & (IMPORT_ERRORS | ALL_ERRORS)

    def modules(self, body):
        for node in below(*body):
            if isinstance(node, Import):
                yield from (a.name for a in node.names)
            elif isinstance(node, ImportFrom) and node.module and not node.level:
                yield node.module

    def goes_on(self, node, handler):
        """Whether code goes on well after a failed import: what the handler does stands in for the module, or nobody misses it."""
        named = bool(self.caught(handler) & IMPORT_ERRORS)
        works = self.works(node.body)
        says = does = False
        for s in handler.body:
            for n in below(s):
                if isinstance(n, Name) and n.id == INSTALL:
                    return False
                if isinstance(n, Call) and ("install" in self.dotted(n.func).lower() or any(self.command(n))):
                    return False
            if isinstance(s, Raise):
                return False
            if isinstance(s, Return):
                if says and (s.value is None or isinstance(s.value, Constant) and s.value.value is None):
                    return False
                does = True
            elif isinstance(s, Expr) and isinstance(s.value, Call):
                name = self.dotted(s.value.func)
                if name in ENDS:
                    return False
                if name in SAYS or name.rpartition(".")[2] in SAYING:
                    says = True
                else:
                    does = True
            elif isinstance(s, (Import, ImportFrom)) and all(m in TOOLS_TO_TELL for m in self.modules([s])):
                continue
            elif not isinstance(s, (_ast.Pass, _ast.Continue, _ast.Break, Expr)):
                does = does or named or not works or isinstance(s, (Import, ImportFrom, _ast.Try, _ast.FunctionDef, _ast.ClassDef))
        if does:
            return True
        if not named and works:
            return False  # it reports whatever may go wrong
        if not says:
            return True
        if works:
            return False
        bound = set()
        for n in below(*node.body):
            if isinstance(n, (Import, ImportFrom)):
                bound |= {a.asname or root(a.name) for a in n.names}
        if self.uses is None:
            self.uses = count(self.tree)
        inside = count(node)
        return all(self.uses.get(name) == inside.get(name) for name in bound)

    def works(self, body):
        """Whether statements do more than import, take names and tell."""
        for s in body:
            if isinstance(s, (Import, ImportFrom, _ast.Pass)):
                continue
            if isinstance(s, _ast.Assign) and not any(isinstance(n, Call) for n in below(s.value)):
                continue
            if isinstance(s, Return) and not any(isinstance(n, Call) for n in below(s)):
                continue
            if isinstance(s, Expr) and isinstance(s.value, Call) and self.dotted(s.value.func).rpartition(".")[2] in SAYING:
                continue
            if isinstance(s, Expr) and isinstance(s.value, (Constant, Name, Attribute)):
                continue
            return True
        return False

    # Conditions

    def static(self, test):
        """True or False when a condition is known beforehand, else None."""
        if isinstance(test, Constant):
            return bool(test.value)
        if isinstance(test, (Name, Attribute)):
            return False if self.dotted(test).rpartition(".")[2] == "TYPE_CHECKING" else None
        if isinstance(test, _ast.UnaryOp) and isinstance(test.op, _ast.Not):
            known = self.static(test.operand)
            return None if known is None else not known
        if isinstance(test, BoolOp):
            stop = isinstance(test.op, _ast.Or)
            parts = [self.static(v) for v in test.values]
            if stop in parts:
                return stop
            return None if None in parts else not stop
        try:
            if isinstance(test, Compare) and len(test.ops) == 1:
                return compare(test.ops[0], self.value(test.left), self.value(test.comparators[0]))
            if isinstance(test, Call) and isinstance(test.func, Attribute) and test.func.attr == "startswith":
                return self.value(test.func.value).startswith(self.value(test.args[0]))
        except Exception:
            pass
        return None

    def value(self, node):
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, (_ast.Tuple, _ast.List, _ast.Set)):
            return tuple(self.value(e) for e in node.elts)
        if isinstance(node, _ast.Subscript):
            whole, index = self.value(node.value), node.slice
            if isinstance(index, _ast.Slice):
                low, high = (None if i is None else self.value(i) for i in (index.lower, index.upper))
                return whole[low:high]
            return whole[self.value(index)]
        if isinstance(node, Call):
            name = self.dotted(node.func)
            if name == "platform.system":
                return posix.uname().sysname
            if name == "platform.python_implementation":
                return "CPython"
            if isinstance(node.func, Attribute) and node.func.attr in ("lower", "upper") and not node.args:
                return getattr(self.value(node.func.value), node.func.attr)()
        return {
            "sys.version_info": tuple(sys.version_info), "sys.version_info.major": sys.version_info[0], "sys.version_info.minor": sys.version_info[1],
            "sys.platform": sys.platform, "os.name": "posix", "sys.version": sys.version,
        }[self.dotted(node)]

    # The reply

    def report(self):
        lax = self.probed | {project(m) for m, _, c in self.imports if c.optional}
        merged = {}
        for module, names, c in self.imports:
            optional = c.optional or c.conditional and project(module) in lax
            entry = merged.setdefault((module, c.unless), [True, {}])
            entry[0] = entry[0] and optional
            entry[1].update(dict.fromkeys(names))
        return {
            "imports": [{"module": m, "names": list(n)[:MOST], "optional": o, "unless": list(u)} for (m, u), (o, n) in list(merged.items())[:MOST]],
            "needs": [{"module": m, "function": f, "optional": c.optional} for (m, f), c in list(self.needs.items())[:MOST]],
            "shell": [s[:LONGEST] for s in self.shell[:FEW]],
            "argv": [[w[:LONGEST_NAME] for w in a[:FEW]] for a in self.argv[:FEW]],
        }


def compare(op, a, b):
    kind = type(op).__name__
    if kind in ("In", "NotIn"):
        return (a in b) == (kind == "In")
    if kind in ("Eq", "NotEq"):
        return (a == b) == (kind == "Eq")
    if kind in ("Lt", "GtE"):
        return (a < b) == (kind == "Lt")
    return (a > b) == (kind == "Gt")
