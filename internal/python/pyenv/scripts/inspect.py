"""Says what is installed, after importing what the set is for: a library that cannot load here is found now."""

import importlib
import importlib.metadata
import json
import re
import sys

for name in sys.argv[1:]:
    importlib.import_module(name)

packages = {}
for distribution in importlib.metadata.distributions():
    packages[re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()] = distribution.version
print(json.dumps(packages))
