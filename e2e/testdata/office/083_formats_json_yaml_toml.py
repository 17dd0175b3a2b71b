# The same settings as JSON, YAML, TOML, INI and XML.
import configparser
import io
import json
import tomllib
import tomli_w
import xmltodict
import yaml

data = {"name": "démo", "ports": [80, 443], "db": {"host": "localhost", "tls": True}}
text = {"json": json.dumps(data, ensure_ascii=False), "yaml": yaml.safe_dump(data, allow_unicode=True), "toml": tomli_w.dumps(data)}
print(json.loads(text["json"]) == yaml.safe_load(text["yaml"]) == tomllib.loads(text["toml"]) == data)
print(text["yaml"].split(), "démo" in text["json"])
print(xmltodict.parse(xmltodict.unparse({"c": {"@id": "1", "port": ["80", "443"]}}))["c"]["port"])
ini = configparser.ConfigParser()
ini["db"] = {"host": "localhost", "port": "5432"}
out = io.StringIO()
ini.write(out)
print(out.getvalue().split())
