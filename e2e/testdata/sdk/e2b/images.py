"""Builds a template from an image of a registry that the server's operator allows, by E2B's own Python library, and makes a sandbox from it."""

import os

from e2b import BuildException, Sandbox, Template

IMAGE = os.environ["IMAGE"]

told = []
template = Template().from_image(IMAGE).set_envs({"CITY": "Bern"}).run_cmd('cat /app/mark > got && echo "$CITY $GREETING" >> got')
Template.build(template, "tool", on_build_logs=lambda entry: told.append(entry.message), cpu_count=1, memory_mb=512)
assert "begins from the image " + IMAGE in "\n".join(told), told
told.clear()
Template.build(template, "tool", on_build_logs=lambda entry: told.append(entry.message), cpu_count=1, memory_mb=512)
assert "CACHED [2/2] RUN" in "\n".join(told), told

box = Sandbox.create("tool", timeout=300)
try:
    assert box.files.read("/home/user/got") == "from the image\nBern hello\n", box.files.read("/home/user/got")
    ran = box.commands.run("cat /app/mark; test -e /usr/bin/python3 || echo bare")
    assert ran.stdout == "from the image\nbare\n", ran
finally:
    box.kill()

try:
    Template.build(Template().from_image("ghcr.io/team/private:1").run_cmd("true"), "other", cpu_count=1, memory_mb=512)
    raise AssertionError("an image that the operator does not allow was built from")
except BuildException as error:
    assert "images.allow" in str(error), error
print("ok images")
