"""Has a model answer a question with code that runs in a sandbox: as programs for the package daytona are written today.

    pip install daytona
    export DAYTONA_API_URL=http://HOST:PORT/daytona DAYTONA_API_KEY=cove_... OPENAI_API_KEY=...
    python sandbox.py 'What is the sum of the first 100 squares?'
"""

import sys

from daytona import CreateSandboxFromSnapshotParams, Daytona
from loop import answer

daytona = Daytona()
sandbox = daytona.create(CreateSandboxFromSnapshotParams(language="python"))


def code_interpreter(code):
    response = sandbox.process.code_run(code)
    if response.exit_code != 0:
        return f"exit code {response.exit_code}\n{response.result}"
    return response.result


try:
    print(answer(sys.argv[1], code_interpreter))
finally:
    daytona.delete(sandbox)
