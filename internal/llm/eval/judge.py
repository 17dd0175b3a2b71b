"""Judges what is in a session. It runs in the session's kernel with these names:

_spec: what to judge, a dict; _user: the names of the session's code.
It ends with an error unless all is right; otherwise it writes _spec["nonce"] as the last line of standard output.
"""
import ast
import contextlib
import io
import sys
import types


class Nowhere(io.TextIOBase):
    def writable(self):
        return True

    def write(self, text):
        return len(text)


def blocks(answer):
    """The fenced blocks of an answer, the last first."""
    found, inside = [], None
    for line in answer.splitlines():
        if line.lstrip().startswith("```"):
            if inside is None:
                inside = []
            else:
                found.append("\n".join(inside) + "\n")
                inside = None
        elif inside is not None:
            inside.append(line)
    return found[::-1]


def prepare(spec, space):
    """Brings names of the prelude that are missing, and the function when the answer alone has it."""
    entry = spec["entry"]
    if entry and entry not in space:
        for code in blocks(spec["answer"]):
            if "def " + entry in code or entry + " =" in code:
                exec(compile(code, "<answer>", "exec"), space)
                break
    if entry and entry not in space:
        raise NameError("the session has no %s, and the answer does not define it" % entry)
    prelude = {"__name__": "__main__"}
    try:
        exec(compile(spec["prelude"], "<prompt>", "exec"), prelude)
    except SyntaxError:  # a prompt that ends in the middle of a statement
        pass
    for name, value in prelude.items():
        if name != entry:
            space.setdefault(name, value)


def tests(spec, user):
    space = user if spec["own"] else dict(user)
    prepare(spec, space)
    exec(compile(spec["text"], "<tests>", "exec"), space)
    if spec["unittest"]:
        suite_of(space)
    elif spec["entry"]:
        space["check"](space[spec["entry"]])


def suite_of(space):
    import unittest

    suite = unittest.TestSuite()
    for value in list(space.values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == "__main__":
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(value))
    result = unittest.TestResult()
    suite.run(result)
    if result.testsRun == 0:
        raise AssertionError("there are no tests to run")
    broken = result.failures + result.errors + [(test, "it was not expected to succeed") for test in result.unexpectedSuccesses]
    if broken or not result.wasSuccessful():
        test, why = broken[0]
        raise AssertionError("%d of %d tests fail; %s: %s" % (len(broken), result.testsRun, test, why))


def code(spec, user):
    space = dict(user)
    space["answer"] = spec["answer"]
    exec(compile(spec["text"], "<check>", "exec"), space)


def value_of(source, space):
    """Runs a cell and returns the value of its last expression, or None."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<reference>", "exec"), space)
    return eval(compile(ast.Expression(last.value), "<reference>", "eval"), space) if last else None


def compare(spec, user):
    kept = sys.modules.get("_cove_reference")
    if kept is None:
        kept = types.ModuleType("_cove_reference")
        kept.space, kept.seen = {"__name__": "__main__", "__builtins__": __builtins__}, 0
        sys.modules["_cove_reference"] = kept
    shown = user.get("Out") or {}
    fresh = [n for n in shown if isinstance(n, int) and n > kept.seen]
    kept.seen = max([kept.seen, *fresh])
    exec(compile(spec["before"], "<before>", "exec"), kept.space)
    expected = value_of(spec["text"], kept.space)
    for name in spec["names"] or ():
        if name not in user:
            raise NameError("the session has no %s" % name)
        if not same(kept.space.get(name), user[name]):
            raise AssertionError("%s is not what it should be" % name)
    if spec["result"] and expected is not None:
        if not fresh:
            raise AssertionError("no cell ended with a value")
        if not same(expected, shown[max(fresh)]):
            raise AssertionError("the value of the last cell is not what it should be")


def same(a, b):
    """Whether two values are the same but for types of numbers and rounding."""
    kinds = [type(v).__module__.partition(".")[0] for v in (a, b)]
    if "pandas" in kinds:
        return same_tables(a, b)
    if "numpy" in kinds:
        import numpy

        if isinstance(a, numpy.ndarray) != isinstance(b, numpy.ndarray):
            return False
        if isinstance(a, numpy.ndarray):
            return a.shape == b.shape and same(a.tolist(), b.tolist())
        a, b = (v.item() if isinstance(v, numpy.generic) else v for v in (a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return type(a) is type(b) and a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or a != a and b != b or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if type(a) is not type(b):
        return False
    if type(a).__eq__ is object.__eq__:  # a plot, a model, a function: that it is there is all that can be said
        return True
    return bool(a == b)


def same_tables(a, b):
    import pandas

    for kind in (pandas.DataFrame, pandas.Series, pandas.Index):
        if isinstance(a, kind) != isinstance(b, kind):
            return False
    if isinstance(a, pandas.DataFrame):
        return a.shape == b.shape and same(list(a.columns), list(b.columns)) and same_tables(a.index, b.index) and all(
            same(a.iloc[:, n].tolist(), b.iloc[:, n].tolist()) for n in range(a.shape[1]))
    if isinstance(a, pandas.Series):
        return same_tables(a.index, b.index) and same(a.tolist(), b.tolist())
    if isinstance(a, pandas.Index):
        return same(a.tolist(), b.tolist())
    return type(a) is type(b) and (a is b or bool(a == b) or a != a and b != b)


out = sys.__stdout__
with contextlib.redirect_stdout(Nowhere()), contextlib.redirect_stderr(Nowhere()):
    {"tests": tests, "code": code, "compare": compare}[_spec["kind"]](_spec, _user)
out.write("\n" + _spec["nonce"] + "\n")
out.flush()
