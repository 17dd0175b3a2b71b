# Imports the module in a process of its own and has its application describe itself as OpenAPI.
import subprocess

INSIDE = r'''
import importlib.util, inspect, json, re, sys
path, name, framework, out = sys.argv[1:5]
spec = importlib.util.spec_from_file_location(sys.argv[5], path)
module = importlib.util.module_from_spec(spec)
sys.modules[sys.argv[5]] = module
sys.argv = [path]
spec.loader.exec_module(module)
app = getattr(module, name)


def flask_document(app):
    """Flask knows its addresses and functions, and nothing of bodies: those are left open."""
    kinds = {"IntegerConverter": {"type": "integer"}, "FloatConverter": {"type": "number"}, "UUIDConverter": {"type": "string", "format": "uuid"}}
    paths = {}
    for rule in app.url_map.iter_rules():
        if rule.endpoint == "static" or rule.endpoint.endswith(".static"):
            continue
        view = app.view_functions[rule.endpoint]
        text = inspect.cleandoc(view.__doc__ or "")
        first, _, rest = text.partition("\n")
        where = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)
        parameters = [{"name": p, "in": "path", "required": True, "schema": kinds.get(type(rule._converters[p]).__name__, {"type": "string"})} for p in sorted(rule.arguments) if p in rule._converters]
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            operation = {"operationId": rule.endpoint + ("" if len(rule.methods - {"HEAD", "OPTIONS"}) == 1 else "_" + method.lower()), "responses": {"default": {"description": "The answer of " + view.__name__ + "()"}}}
            if first:
                operation["summary"] = first
            if rest.strip():
                operation["description"] = rest.strip()
            if parameters:
                operation["parameters"] = parameters
            paths.setdefault(where, {})[method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": app.name, "version": "0"}, "paths": paths}


document = app.openapi() if framework == "fastapi" else flask_document(app)
with open(out, "w", encoding="utf-8") as f:
    json.dump(document, f)
'''


def openapi():
    path = write_source()
    os.makedirs(".cove-check", exist_ok=True)
    out = os.path.join(os.getcwd(), ".cove-check", "document")
    name, framework = TASK["application"]
    module = os.path.splitext(os.path.basename(TASK["file"]))[0]
    try:
        done = subprocess.run([sys.executable, "-c", INSIDE, path, name, framework, out, module], stdin=subprocess.DEVNULL, capture_output=True, timeout=TASK["seconds"], env=surroundings())
    except subprocess.TimeoutExpired:
        emit("failed", why=f"the module was still being imported after {TASK['seconds']} s")
        return
    if done.returncode:
        emit("failed", why=tail(done.stderr))
        return
    emit("document", described=0, undocumented=0)


openapi()
