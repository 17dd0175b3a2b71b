# Change a YAML file and keep its comments; validate it.
import io
import jsonschema
from ruamel.yaml import YAML

yaml = YAML()
doc = yaml.load("# servers\nweb:\n  port: 80  # http\n  hosts: [a, b]\n")
doc["web"]["port"] = 81
out = io.StringIO()
yaml.dump(doc, out)
print(out.getvalue().strip())
schema = {"type": "object", "properties": {"port": {"type": "integer", "maximum": 65535}}, "required": ["port"]}
jsonschema.validate({"port": 8080}, schema)
errors = [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors({"port": 70000})]
print(errors)
