# Notes to a web page by the program pandoc.
import subprocess

open("notes.md", "w").write("---\ntitle: Notes\n---\n\nWater is H~2~O and $x^2$.\n")
subprocess.run(["pandoc", "notes.md", "-s", "--mathml", "-o", "notes.html"], check=True)
page = open("notes.html").read()
print("<title>Notes</title>" in page, "<sub>2</sub>" in page, "<msup>" in page)
