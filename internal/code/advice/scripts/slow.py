# Finds slow forms of pandas, numpy and plain Python, and writes to tables that are lost, by the syntax tree alone. It says nothing where it does not know what a name is.
import ast

FRAME_METHODS = {
    "copy", "head", "tail", "sort_values", "sort_index", "reset_index", "set_index", "dropna", "query", "merge", "rename", "assign", "drop",
    "drop_duplicates", "join", "sample", "astype",
}
READERS = {"read_csv", "read_excel", "read_parquet", "read_table", "read_sql", "read_sql_query", "read_feather", "read_pickle", "read_fwf"}
ARRAY_MAKERS = {
    "array", "asarray", "zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "zeros_like", "ones_like", "empty_like", "full_like",
    "concatenate", "append", "hstack", "vstack", "stack", "sqrt", "exp", "log", "sin", "cos", "where", "cumsum", "diff", "repeat", "tile", "loadtxt",
}
RANDOM_MAKERS = {"rand", "randn", "normal", "uniform", "randint", "random", "integers", "standard_normal"}
ARRAY_FUNCTIONS = {"abs", "min", "max", "round", "float", "int", "bool", "pow"}
STRING_METHODS = {
    "upper", "lower", "strip", "lstrip", "rstrip", "title", "capitalize", "swapcase", "replace", "startswith", "endswith", "zfill", "split",
    "find", "isdigit", "isalpha", "isnumeric", "count", "removeprefix", "removesuffix",
}
MUTATORS = {"append", "extend", "insert", "remove", "pop", "clear", "add", "update", "discard", "sort", "reverse"}
UNHASHABLE = {"list", "set", "array", "series", "frame"}  # what no set can hold, which is the advice for what is searched in a list
SHORT = 8  # elements of a list that is written out: to look through so few is fast

ADVICE = {
    "slow-iterrows": (
        "a loop over iterrows() makes a Series of each row",
        "compute with whole columns; where a loop is needed, use itertuples()"),
    "slow-itertuples": (
        "a loop over itertuples() that only computes with numbers runs in Python, row by row",
        "compute with whole columns, such as (df.price * df.count).sum()"),
    "slow-apply-rows": (
        "apply(axis=1) calls Python for each row, for what whole columns can be computed with",
        "use the columns: df['a'] * df['b']; np.where(condition, x, y) for a choice"),
    "slow-apply-values": (
        "apply() calls Python for each value, for what the column can be computed with",
        "use the column: df['a'] * 2 instead of df['a'].apply(lambda x: x * 2)"),
    "slow-apply-text": (
        "apply() calls Python for each text, for what the column's .str does",
        "use .str, such as df['name'].str.upper()"),
    "slow-concat-in-loop": (
        "each turn of the loop copies all rows that there are so far",
        "collect the parts in a list, and call pd.concat(parts) once after the loop"),
    "slow-array-append": (
        "each turn of the loop copies the whole array",
        "collect the values in a list, and make the array of it after the loop"),
    "slow-cell-write": (
        "the loop writes single cells of a table",
        "collect the values in a list and assign the column once, or compute the column as a whole"),
    "slow-array-loop": (
        "a Python loop goes through the elements of a NumPy array",
        "compute with the whole array, such as (a * a).sum() or np.where(a > 0, a, 0)"),
    "slow-filter-per-group": (
        "each turn of the loop searches the whole table for the rows of one group",
        "use groupby: for key, part in df.groupby('column')"),
    "slow-list-search": (
        "each turn of the loop searches a list from its beginning",
        "make a set of it before the loop: known = set(items)"),
    "slow-list-grown": (
        "each turn of the loop searches a list from its beginning, to which the loop adds",
        "keep a set beside the list: if x not in known: known.add(x); items.append(x)"),
    "lost-write": (
        "what is written goes into a part of the table that is a copy, and the table stays as it is (pandas 3; pandas 2 warned of it)",
        "write into the table itself: df.loc[rows, 'column'] = value"),
    "slow-list-front": (
        "each turn of the loop moves all elements of a list by one",
        "use collections.deque with popleft() and appendleft()"),
    "slow-sort-in-loop": (
        "each turn of the loop sorts the whole list again",
        "sort once outside of the loop; for a list that grows, use bisect.insort() or heapq"),
    "slow-string-building": (
        "each turn of the loop copies the whole text that there is so far",
        "collect the pieces in a list, and join them after the loop: ''.join(pieces)"),
    "slow-list-sum": (
        "sum() of lists copies the whole list for each one that is added",
        "use list(itertools.chain.from_iterable(lists))"),
}


class Scope:
    """What the names of a module or function are bound to: a kind, or None where that is not known."""

    def __init__(self, above=None):
        self.above, self.kinds = above, {}

    def bind(self, name, kind):
        self.kinds[name] = kind if self.kinds.get(name, kind) == kind else None

    def kind(self, name):
        scope = self
        while scope is not None:
            if name in scope.kinds:
                return scope.kinds[name]
            scope = scope.above
        return None


class Loop:
    def __init__(self, node, targets, body):
        self.node, self.targets, self.body = node, targets, body
        self.stored, self.changed = set(), set()
        self.grown, self.shrunk = set(), set()  # of the changed ones
        for part in body:
            for n in ast.walk(part):
                if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
                    self.stored.add(n.id)
                elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in MUTATORS:
                    self.changed.add(ast.unparse(n.func.value))
                    (self.grown if n.func.attr == "append" else self.shrunk).add(ast.unparse(n.func.value))
                elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
                    self.changed.add(ast.unparse(n.value))


def names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


class Finder(ast.NodeVisitor):
    def __init__(self, tree):
        self.pandas, self.numpy, self.functions = set(), set(), {}
        self.from_pandas, self.from_numpy = {}, {}
        self.attributes = {}  # self.NAME of the class that is looked at, to its kind
        self.loops, self.found = [], set()
        for n in ast.walk(tree):
            if isinstance(n, ast.Import):
                for a in n.names:
                    if a.name in ("pandas", "numpy"):
                        getattr(self, a.name).add(a.asname or a.name)
            elif isinstance(n, ast.ImportFrom) and n.module in ("pandas", "numpy") and not n.level:
                for a in n.names:
                    getattr(self, "from_" + n.module)[a.asname or a.name] = a.name
        for n in tree.body:
            if isinstance(n, ast.FunctionDef):
                self.functions[n.name] = None if n.name in self.functions else n
        self.scope = Scope()
        self.fill(tree.body)

    # What names are.

    def fill(self, body):
        """Bind the names of one scope."""
        for name, kind in self.parameters:
            self.scope.bind(name, kind)
        for statement in body:
            self.bind(statement)

    parameters = ()

    def bind(self, node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.scope.bind(node.name, "other")
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Assign):
            for t in node.targets:
                self.bind_target(t, node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self.scope.bind(node.target.id, self.annotated(node.annotation) or (node.value and self.kind(node.value)))
        elif isinstance(node, ast.NamedExpr):
            self.bind_target(node.target, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self.bind_target(node.target, None)
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    self.bind_target(item.optional_vars, None)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                self.scope.bind(name, None)
        for child in ast.iter_child_nodes(node):
            self.bind(child)

    def bind_target(self, target, value):
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, self.kind(value) if value is not None else None)
            return
        for n in ast.walk(target):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                self.scope.bind(n.id, None)

    def annotated(self, note):
        text = ast.unparse(note).strip("'\"") if note is not None else ""
        root = text.partition("[")[0].rpartition(".")[2]
        return {"DataFrame": "frame", "Series": "series", "ndarray": "array", "NDArray": "array", "list": "list", "List": "list", "str": "str"}.get(root)

    def library(self, func):
        """('pandas', 'concat') for pd.concat, ('numpy', 'random.rand') for np.random.rand, or (None, None)."""
        parts = []
        while isinstance(func, ast.Attribute):
            parts.append(func.attr)
            func = func.value
        if not isinstance(func, ast.Name):
            return None, None
        for module in ("pandas", "numpy"):
            if func.id in getattr(self, module) and parts:
                return module, ".".join(reversed(parts))
            if not parts and func.id in getattr(self, "from_" + module):
                return module, getattr(self, "from_" + module)[func.id]
        return None, None

    def kind(self, node):
        if isinstance(node, ast.Constant):
            return "str" if isinstance(node.value, str) else "number" if isinstance(node.value, (int, float)) else None
        if isinstance(node, ast.JoinedStr):
            return "str"
        if isinstance(node, (ast.List, ast.ListComp)):
            return "list"
        if isinstance(node, (ast.Set, ast.SetComp)):
            return "set"
        if isinstance(node, ast.Name):
            return self.scope.kind(node.id)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return self.attributes.get(node.attr)
            return "array" if node.attr == "values" and self.kind(node.value) in ("frame", "series") else None
        if isinstance(node, ast.BinOp):
            kinds = {self.kind(node.left), self.kind(node.right)}
            if "str" in kinds and isinstance(node.op, (ast.Add, ast.Mod)):
                return "str"
            return next((k for k in ("array", "series", "frame") if k in kinds), None)
        if isinstance(node, ast.Subscript):
            return self.kind_of_part(node)
        if isinstance(node, ast.Call):
            return self.kind_of_call(node)
        return None

    def kind_of_part(self, node):
        of = self.kind(node.value)
        if of == "frame":
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                return "series"
            if isinstance(node.slice, (ast.List, ast.Compare)):
                return "frame"
        if isinstance(node.slice, ast.Slice) and of in ("list", "array", "str", "frame", "series"):
            return of
        return None

    def kind_of_call(self, node):
        module, name = self.library(node.func)
        if module == "pandas":
            return "frame" if name in READERS or name in ("DataFrame", "concat", "merge") else "series" if name == "Series" else None
        if module == "numpy":
            root, _, last = name.rpartition(".")
            sized = node.args if last in ("rand", "randn") else node.args[2:] or node.keywords or (last in ("random", "standard_normal") and node.args)
            return "array" if not root and name in ARRAY_MAKERS or root == "random" and last in RANDOM_MAKERS and sized else None
        if isinstance(node.func, ast.Name):
            return {"list": "list", "sorted": "list", "str": "str", "set": "set"}.get(node.func.id) if self.scope.kind(node.func.id) is None else None
        if isinstance(node.func, ast.Attribute):
            method, of = node.func.attr, self.kind(node.func.value)
            if method in ("split", "splitlines") and of == "str" or method in ("readlines", "tolist"):
                return "list"
            if of == "frame" and method in FRAME_METHODS:
                return "frame"
            if method == "to_numpy":
                return "array"
            if of in ("str", "array", "series") and method in ("upper", "lower", "strip", "copy"):
                return of
        return None

    # The walk.

    def report(self, rule, node, severity="warning"):
        if (rule, node.lineno) not in self.found:
            self.found.add((rule, node.lineno))
            message, better = ADVICE[rule]
            finding(rule, severity, node.lineno, node.col_offset + 1, message, better)

    def visit_FunctionDef(self, node):
        loops, scope, parameters = self.loops, self.scope, self.parameters
        for d in node.decorator_list:
            self.visit(d)
        a = node.args
        self.parameters = [(p.arg, self.annotated(p.annotation)) for p in a.posonlyargs + a.args + a.kwonlyargs + [x for x in (a.vararg, a.kwarg) if x]]
        self.loops, self.scope = [], Scope(scope)
        self.fill(node.body)
        for statement in node.body:
            self.visit(statement)
        self.loops, self.scope, self.parameters = loops, scope, parameters

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        loops, scope = self.loops, self.scope
        self.loops, self.scope = [], Scope(scope)
        for p in ast.walk(node.args):
            if isinstance(p, ast.arg):
                self.scope.bind(p.arg, None)
        self.visit(node.body)
        self.loops, self.scope = loops, scope

    def visit_ClassDef(self, node):
        before = self.attributes
        self.attributes = {}
        for n in ast.walk(node):
            if isinstance(n, ast.Assign):
                for t in n.targets:
                    if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self":
                        kind = self.kind(n.value)
                        self.attributes[t.attr] = kind if self.attributes.get(t.attr, kind) == kind else None
        self.generic_visit(node)
        self.attributes = before

    def visit_For(self, node):
        self.visit(node.iter)
        loop = Loop(node, names_in(node.target), node.body)
        self.for_loop(node, loop)
        self.loops.append(loop)
        for statement in node.body:
            self.visit(statement)
        self.loops.pop()
        for statement in node.orelse:
            self.visit(statement)

    visit_AsyncFor = visit_For

    def visit_While(self, node):
        self.loops.append(Loop(node, set(), [node.test] + node.body))
        self.visit(node.test)
        for statement in node.body:
            self.visit(statement)
        self.loops.pop()
        for statement in node.orelse:
            self.visit(statement)

    def comprehension(self, node, parts):
        self.visit(node.generators[0].iter)
        inner = [g.iter for g in node.generators[1:]] + [c for g in node.generators for c in g.ifs] + parts
        targets = set().union(*(names_in(g.target) for g in node.generators))
        self.loops.append(Loop(node, targets, inner))
        for part in inner:
            self.visit(part)
        self.loops.pop()

    def visit_ListComp(self, node):
        self.comprehension(node, [node.elt])

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node):
        self.comprehension(node, [node.key, node.value])

    # The forms.

    def for_loop(self, node, loop):
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "enumerate" and call.args:
            call = call.args[0]
        method = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
        if method == "iterrows" and not call.args:
            self.report("slow-iterrows", node)
        elif method == "itertuples" and self.only_numbers(node.body, loop, set()):
            self.report("slow-itertuples", node)
        self.array_loop(node, loop)
        self.group_loop(node)

    def array_loop(self, node, loop):
        arrays = set()
        if isinstance(node.iter, ast.Name) and self.kind(node.iter) == "array" and isinstance(node.target, ast.Name):
            pass
        elif isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range" and len(node.iter.args) == 1:
            bound = node.iter.args[0]
            if isinstance(bound, ast.Call) and isinstance(bound.func, ast.Name) and bound.func.id == "len" and bound.args:
                of = bound.args[0]
            elif isinstance(bound, ast.Attribute) and bound.attr == "size":
                of = bound.value
            else:
                return
            if self.kind(of) != "array":
                return
        else:
            return
        for statement in node.body:
            for n in ast.walk(statement):
                if isinstance(n, ast.Subscript):
                    if not isinstance(n.slice, ast.Name) or n.slice.id not in loop.targets:
                        return  # a neighbour, a slice or another order: not simply the whole array
                    arrays.add(ast.unparse(n.value))
        if self.only_numbers(node.body, loop, arrays):
            self.report("slow-array-loop", node)

    def only_numbers(self, body, loop, arrays):
        """Say that the body of a loop does nothing but arithmetic and sums, or lists of them, so that no turn depends on the one before it."""
        sums = 0
        for statement in body:
            if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)) and isinstance(statement.target, (ast.Name, ast.Subscript)):
                if self.kind(statement.target) == "str" or not self.arithmetic(statement.value):
                    return False
                if isinstance(statement.target, ast.Name) and statement.target.id in names_in(statement.value):
                    return False
                if isinstance(statement.target, ast.Subscript) and ast.unparse(statement.target.value) not in arrays:
                    return False
                sums += 1
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], (ast.Name, ast.Subscript)):
                target = statement.targets[0]
                if not self.arithmetic(statement.value):
                    return False
                if isinstance(target, ast.Name) and target.id in names_in(statement.value):
                    return False
                if isinstance(target, ast.Subscript):
                    if ast.unparse(target.value) not in arrays:
                        return False
                    sums += 1
            elif isinstance(statement, ast.If):
                if not self.arithmetic(statement.test) or not self.only_numbers(statement.body, loop, arrays):
                    return False
                if statement.orelse and not self.only_numbers(statement.orelse, loop, arrays):
                    return False
                sums += 1
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
                call = statement.value
                if call.func.attr != "append" or len(call.args) != 1 or not self.arithmetic(call.args[0]) or not self.computes(call.args[0]):
                    return False
                sums += 1
            else:
                return False
        return sums > 0 and not self.carried(body)

    def carried(self, body):
        """Say that a name which the loop writes is read before it is written in the same turn: a turn needs what the one before it made."""
        changed = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        written = set()
        for statement in body:
            read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if read & (changed - written):
                return True
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                written.add(statement.targets[0].id)
        return False

    def computes(self, node):
        return any(isinstance(n, (ast.BinOp, ast.Compare, ast.Call, ast.UnaryOp)) for n in ast.walk(node))

    def arithmetic(self, node):
        """Say that an expression is made of names, columns, numbers, operators and mathematical functions alone."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (int, float, str)) or node.value is None
        if isinstance(node, ast.Name):
            return self.kind(node) not in ("str", "list", "set")
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name)
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Name) and isinstance(node.slice, (ast.Constant, ast.Name))
        if isinstance(node, ast.BinOp):
            texts = [n for n in (node.left, node.right) if isinstance(n, (ast.Constant, ast.JoinedStr)) and self.kind(n) == "str"]
            return not texts and self.arithmetic(node.left) and self.arithmetic(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.arithmetic(node.operand)
        if isinstance(node, ast.BoolOp):
            return all(self.arithmetic(v) for v in node.values)
        if isinstance(node, ast.Compare):
            plain = all(isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
            return plain and self.arithmetic(node.left) and all(self.arithmetic(c) for c in node.comparators)
        if isinstance(node, ast.IfExp):
            return all(self.arithmetic(n) for n in (node.test, node.body, node.orelse))
        if isinstance(node, ast.Call):
            known = isinstance(node.func, ast.Name) and node.func.id in ARRAY_FUNCTIONS
            known = known or isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id in ({"math"} | self.numpy)
            return known and not node.keywords and all(self.arithmetic(a) for a in node.args)
        return False

    def group_loop(self, node):
        """for key in df['c'].unique(): part = df[df['c'] == key]"""
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("sorted", "list", "set") and call.args:
            call = call.args[0]
        column = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "unique" else call
        if not isinstance(node.target, ast.Name) or not isinstance(column, (ast.Subscript, ast.Attribute)) or column is call and not isinstance(node.iter, ast.Call):
            return
        text, table = ast.unparse(column), ast.unparse(column.value)
        for statement in node.body:
            for n in ast.walk(statement):
                if not isinstance(n, ast.Subscript) or not isinstance(n.slice, ast.Compare) or len(n.slice.ops) != 1 or not isinstance(n.slice.ops[0], ast.Eq):
                    continue
                sides = {ast.unparse(n.slice.left), ast.unparse(n.slice.comparators[0])}
                if ast.unparse(n.value) in (table, table + ".loc") and sides == {text, node.target.id}:
                    self.report("slow-filter-per-group", n)

    def visit_Assign(self, node):
        for target in node.targets:
            self.lost_write(target)
        if self.loops and len(node.targets) == 1:
            self.accumulated(node)
            self.cell_write(node, node.targets[0])
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.lost_write(node.target)
        if self.loops:
            self.cell_write(node, node.target)
            if isinstance(node.op, ast.Add) and isinstance(node.target, (ast.Attribute, ast.Subscript)) and self.kind(node.target) == "str" and self.outlives(node.target):
                self.report("slow-string-building", node)
        self.generic_visit(node)

    def lost_write(self, target):
        """df[rows]['b'] = x, df['b'][rows] = x, df.loc[rows]['b'] = x, df[rows].b = x"""
        part = target.value if isinstance(target, (ast.Subscript, ast.Attribute)) else None
        if not isinstance(part, ast.Subscript) or isinstance(part.slice, ast.Tuple):
            return  # df.loc[row, column][key] = x changes what is in one cell
        if isinstance(target, ast.Attribute) and isinstance(part.slice, ast.Constant):
            return
        table = part.value
        if isinstance(table, ast.Attribute) and table.attr in ("loc", "iloc"):
            table = table.value
        if self.kind(table) == "frame":
            self.report("lost-write", target, "error")

    def accumulated(self, node):
        target, value = node.targets[0], node.value
        if not isinstance(target, (ast.Name, ast.Attribute)):
            return
        text = ast.unparse(target)
        if isinstance(value, ast.Call):
            module, name = self.library(value.func)
            parts = []
            for a in value.args:
                parts.extend(ast.unparse(e) for e in (a.elts if isinstance(a, (ast.List, ast.Tuple)) else [a]))
            if module == "pandas" and name == "concat" and text in parts and self.outlives(target):
                self.report("slow-concat-in-loop", node)
            elif module == "numpy" and name in ("append", "concatenate", "hstack", "vstack", "insert") and text in parts and self.outlives(target):
                self.report("slow-array-append", node)
            elif isinstance(value.func, ast.Attribute) and value.func.attr in ("append", "_append") and ast.unparse(value.func.value) == text:
                if self.outlives(target) and (self.kind(target) == "frame" or any(k.arg == "ignore_index" for k in value.keywords)):
                    self.report("slow-concat-in-loop", node)
            elif isinstance(value.func, ast.Name) and value.func.id == "sorted" and value.args and ast.unparse(value.args[0]) == text and self.outlives(target):
                self.report("slow-sort-in-loop", node)
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and self.kind(target) == "str" or self.is_text_sum(value, text, target):
            self.text_sum(node, value, text)

    def is_text_sum(self, value, text, target):
        """Say that a sum which a name is assigned is one of texts: it begins as a text, and one of the summands is written out."""
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add) or not isinstance(target, ast.Name):
            return False
        summands = self.summands(value)
        starts = [k for k in (self.kind(s) for s in summands if ast.unparse(s) != text)]
        return "str" in starts and text in [ast.unparse(s) for s in summands]

    def summands(self, value):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            return self.summands(value.left) + self.summands(value.right)
        return [value]

    def text_sum(self, node, value, text):
        """CPython extends a text in place in `s += x` and `s = s + x`, but not in `s = x + s` and `s = s + x + y`."""
        terms = [ast.unparse(s) for s in self.summands(value)]
        if terms.count(text) == 1 and (terms[0] != text or len(terms) > 2 and isinstance(value.left, ast.BinOp)) and self.outlives(node.targets[0]):
            self.report("slow-string-building", node)

    def outlives(self, target):
        """Say that a name keeps what it holds from one turn of the innermost loop to the next."""
        loop, root = self.loops[-1], target
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if root is not target:
            return isinstance(root, ast.Name) and root.id not in loop.targets | loop.stored
        if target.id in loop.targets:
            return False
        bindings = 0
        for part in loop.body:
            for n in ast.walk(part):
                if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Store):
                    bindings += 1
        return bindings == 1

    def cell_write(self, node, target):
        """df.loc[i, 'c'] = x, where i comes from the loop"""
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Attribute) or target.value.attr not in ("loc", "iloc"):
            return
        table = target.value.value
        if self.kind(table) not in ("frame", None) or isinstance(table, ast.Name) and table.id in self.loops[-1].targets:
            return
        row = target.slice.elts[0] if isinstance(target.slice, ast.Tuple) and target.slice.elts else target.slice
        turning = set().union(*(loop.targets for loop in self.loops))
        if isinstance(row, ast.Name) and row.id in turning and isinstance(target.slice, ast.Tuple):
            self.report("slow-cell-write", node)
        elif isinstance(row, ast.Call) and ast.unparse(row) == "len(" + ast.unparse(table) + ")":
            self.report("slow-concat-in-loop", node)

    def visit_Compare(self, node):
        if self.loops and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            within = node.comparators[0]
            loop = self.loops[-1]
            searched = isinstance(within, ast.Name) and self.kind(within) == "list" and within.id not in loop.stored | loop.targets | self.changing \
                and names_in(node.left) & (loop.targets | loop.stored) and self.kind(node.left) not in UNHASHABLE
            if searched and within.id in loop.grown - loop.shrunk:
                self.report("slow-list-grown", node, "note")
            elif searched and within.id not in loop.changed and within.id not in self.short:
                # How long a list is that begins empty and grows, nobody can see.
                self.report("slow-list-search", node, "warning" if within.id in self.computed else "note")
        self.generic_visit(node)

    short = computed = changing = frozenset()

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            self.method(node, node.func)
        elif isinstance(node.func, ast.Name) and node.func.id == "sum" and len(node.args) + len(node.keywords) == 2:
            start = node.args[1] if len(node.args) == 2 else node.keywords[0].value
            if isinstance(start, ast.List) and not start.elts:
                self.report("slow-list-sum", node)
        before = self.changing
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            self.changing = before | {ast.unparse(node.func.value)}  # by what its arguments say, as in x.extend(v for v in new if v not in x)
        self.generic_visit(node)
        self.changing = before

    def method(self, node, func):
        if func.attr == "apply" and node.args:
            self.applied(node, func)
        if not self.loops or self.kind(func.value) != "list" or not isinstance(func.value, (ast.Name, ast.Attribute)):
            return
        first = node.args[0] if node.args else None
        zero = isinstance(first, ast.Constant) and first.value == 0 and first.value is not False
        turning = isinstance(func.value, ast.Name) and (func.value.id in self.loops[-1].targets or func.value.id in self.loops[-1].stored)
        if zero and not turning and (func.attr == "pop" and len(node.args) == 1 or func.attr == "insert"):
            emptied = func.attr == "pop" and isinstance(self.loops[-1].node, ast.While) and ast.unparse(func.value) in ast.unparse(self.loops[-1].node.test)
            self.report("slow-list-front", node, "warning" if emptied else "note")
        elif func.attr == "sort" and not turning:
            self.report("slow-sort-in-loop", node)

    def applied(self, node, func):
        by_row = any(k.arg == "axis" and isinstance(k.value, ast.Constant) and k.value.value in (1, "columns") for k in node.keywords)
        if any(k.arg != "axis" for k in node.keywords) or len(node.args) != 1 or self.grouped(func.value):
            return
        parameter, body = self.one_expression(node.args[0])
        if body is None:
            return
        if by_row:
            if self.computes(body) and self.arithmetic_of(body, parameter, rows=True):
                self.report("slow-apply-rows", node)
            return
        if isinstance(body, ast.Call) and isinstance(body.func, ast.Attribute) and isinstance(body.func.value, ast.Name) and body.func.value.id == parameter:
            if body.func.attr in STRING_METHODS and not any(parameter in names_in(a) for a in body.args) and self.column(func.value):
                self.report("slow-apply-text", node)
        elif isinstance(body, (ast.BinOp, ast.Compare, ast.IfExp, ast.UnaryOp)) and self.column(func.value) and self.arithmetic_of(body, parameter, rows=False):
            self.report("slow-apply-values", node)

    def grouped(self, node):
        """Say that apply is called on groups or windows, where it gets tables and not rows."""
        return any(isinstance(n, ast.Attribute) and n.attr in ("groupby", "rolling", "expanding", "resample", "ewm", "style") for n in ast.walk(node))

    def column(self, node):
        if self.kind(node) == "series":
            return True
        return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) and self.kind(node.value) in ("frame", None)

    def one_expression(self, f):
        """The parameter and the expression of a lambda, or of a function of the module that only returns one."""
        if isinstance(f, ast.Name) and self.functions.get(f.id):
            body = [s for s in self.functions[f.id].body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
                return self.parameter(self.functions[f.id].args), body[0].value
        elif isinstance(f, ast.Lambda):
            return self.parameter(f.args), f.body
        return None, None

    def parameter(self, args):
        return args.args[0].arg if len(args.args) == 1 and not (args.vararg or args.kwarg or args.kwonlyargs or args.defaults) else None

    def arithmetic_of(self, body, parameter, rows):
        """Say that an expression computes with the parameter alone, or with columns of it, and numbers."""
        if parameter is None or parameter not in names_in(body) or not self.arithmetic(body):
            return False
        for n in ast.walk(body):
            if isinstance(n, ast.Call):
                module, name = self.library(n.func)
                if module != "numpy" and not (isinstance(n.func, ast.Name) and n.func.id in ("abs", "round")):
                    return False
            if rows and isinstance(n, ast.Name) and n.id == parameter:
                continue
            if isinstance(n, (ast.Subscript, ast.Attribute)) and isinstance(n.value, ast.Name) and n.value.id == parameter and not rows:
                return False
        if rows:
            plain = sum(isinstance(n, ast.Name) and n.id == parameter for n in ast.walk(body))
            columns = [n for n in ast.walk(body) if isinstance(n, (ast.Subscript, ast.Attribute)) and isinstance(n.value, ast.Name) and n.value.id == parameter]
            return plain == len(columns)
        return not any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(body))


def short_lists(tree):
    """The names that a list of few elements is written out for, wherever that is."""
    names = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.List) and 0 < len(n.value.elts) <= SHORT:
            names |= set().union(*(names_in(t) for t in n.targets))
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.ListComp) and isinstance(n.value.elt, (ast.List, ast.Dict, ast.Set, ast.ListComp)):
            names |= set().union(*(names_in(t) for t in n.targets))  # of what a set cannot hold
    return names


def computed_lists(tree):
    """The names that a list is computed for, or read from a file, wherever that is."""
    names = set()
    for n in ast.walk(tree):
        if not isinstance(n, ast.Assign):
            continue
        v = n.value
        made = isinstance(v, ast.ListComp) or isinstance(v, ast.Call) and (
            isinstance(v.func, ast.Name) and v.func.id in ("list", "sorted") and v.args
            or isinstance(v.func, ast.Attribute) and v.func.attr in ("readlines", "splitlines", "split", "tolist"))
        if made:
            names |= set().union(*(names_in(t) for t in n.targets))
    return names


def imported(tree):
    """The modules that a program imports, absolute, in their order."""
    out = []
    for n in ast.walk(tree):
        if isinstance(n, ast.Import):
            out.extend(a.name for a in n.names)
        elif isinstance(n, ast.ImportFrom) and n.module and not n.level:
            out.append(n.module)
    return list(dict.fromkeys(out))


def applications(tree):
    """The web applications that a module makes: name and framework."""
    out = []
    for n in tree.body:
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name):
            made = ast.unparse(n.value.func).rpartition(".")[2]
            if made in ("FastAPI", "Flask"):
                out.append([n.targets[0].id, made.lower()])
    return out


def has_types(tree):
    for n in ast.walk(tree):
        if isinstance(n, ast.AnnAssign):
            return True
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and (n.returns or any(a.annotation for a in n.args.args + n.args.kwonlyargs)):
            return True
    return False


def look():
    try:
        tree = compile(TASK["text"], TASK["file"], "exec", ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if TASK["notebook"] else 0))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        line, column = (e.lineno, e.offset) if isinstance(e, SyntaxError) else (1, 1)
        finding("syntax-error", "error", line or 1, column or 1, "the code cannot be parsed: " + str(getattr(e, "msg", e)))
        emit("source", parsed=False, imports=[], applications=[], types=False)
        return
    emit("source", parsed=True, imports=imported(tree)[:200], applications=applications(tree)[:10], types=has_types(tree))
    try:
        finder = Finder(tree)
        finder.short, finder.computed = short_lists(tree), computed_lists(tree)
        finder.visit(tree)
    except RecursionError:
        emit("note", text="the code is nested too deeply to look for slow forms in all of it")


import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    look()
