# The text of an RTF file.
from striprtf.striprtf import rtf_to_text

rtf = r"{\rtf1\ansi\ansicpg1252{\fonttbl\f0 Arial;}\f0\pard Caf\'e9 \b bold\b0\par \u20320?\u22909? end\par}"
open("a.rtf", "w").write(rtf)
print(rtf_to_text(open("a.rtf").read()).strip().splitlines())
