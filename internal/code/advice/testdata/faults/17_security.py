"""Code of others, and the shell."""
import subprocess
import sys

expression = sys.argv[1]
print(eval(expression))  # fault: S307
subprocess.run("ls " + expression, shell=True)  # fault: S602, PLW1510
subprocess.run(["ls", expression], check=True)
exec(expression)  # fault: S102
print(int(expression))
