"""Makes volumes by E2B's own Python library, changes what is in them, and has sandboxes share them. VOLUME_MIB is what one may hold."""

import io
import os
import time

from e2b import NotFoundException, Sandbox, SandboxException, Volume

ROOM = int(os.environ["VOLUME_MIB"])


def fails(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("%s was expected" % kind.__name__)


made = Volume.create("data")
assert [v.name for v in Volume.list()] == ["data"] and Volume.get_info(made.volume_id).name == "data"
assert "409" in fails(Exception, lambda: Volume.create("data"))
fails(NotFoundException, lambda: Volume.connect("no-such"))
data = Volume.connect(made.volume_id)
data.write_file("a/b.txt", "text")
data.write_file("large", io.BytesIO(b"x" * (3 << 20)))
assert data.read_file("a/b.txt") == "text" and len(data.read_file("large", format="bytes")) == 3 << 20
assert data.make_dir("folder", mode=0o700).mode == 0o700
assert [(e.path, e.type.value) for e in data.list("/", depth=2)] == [("/a", "directory"), ("/a/b.txt", "file"), ("/folder", "directory"), ("/large", "file")]
assert data.update_metadata("a/b.txt", mode=0o600).mode == 0o600 and data.get_info("a/b.txt").uid == 1000
assert data.exists("a") and not data.exists("c")
data.write_file("../../above", "in the volume")
assert data.read_file("above") == "in the volume"
data.remove("above")
data.remove("large")
print("ok content")

fails(SandboxException, lambda: Sandbox.create(volume_mounts={"/etc/data": data}))
with Sandbox.create(volume_mounts={"/mnt/data1": data}) as one, Sandbox.create(volume_mounts={"/home/user/data": data}) as two:
    assert [(m["name"], m["path"]) for m in one.get_info().volume_mounts] == [("data", "/mnt/data1")], one.get_info()
    assert one.commands.run("cat /mnt/data1/a/b.txt; stat -c %U /mnt/data1/a/b.txt").stdout == "textuser\n"
    two.files.write("/home/user/data/c.txt", "of two")
    assert one.files.read("/mnt/data1/c.txt") == "of two" and data.read_file("c.txt") == "of two"
    one.commands.run("ln -s /etc/passwd /mnt/data1/out; ln -s / /mnt/data1/root; ln -s a/b.txt /mnt/data1/in; cp /bin/true /mnt/data1/true && /mnt/data1/true")
    assert data.get_info("out").target == "/etc/passwd" and data.read_file("in") == "text"
    fails(Exception, lambda: data.read_file("out"))
    fails(Exception, lambda: data.list("root"))
    fails(Exception, lambda: data.write_file("root/tmp/cove-volume", "x"))
    assert not os.path.exists("/tmp/cove-volume")
    fails(Exception, lambda: Volume.destroy(data.volume_id))
    one.pause()
    two.commands.run("rm data/c.txt; echo later > data/d.txt")
    one = one.connect()
    assert one.commands.run("cat /mnt/data1/d.txt; ls /mnt/data1/c.txt || true").stdout == "later\n"
    assert two.commands.run("pip download nothing 2>/dev/null; python3 -c 'import mmap; f = open(\"data/m\", \"w+b\"); f.write(b\"x\" * 4096); f.flush(); m = mmap.mmap(f.fileno(), 4096); m[0:2] = b\"ab\"; m.flush(); print(open(\"data/m\", \"rb\").read(3))'").stdout == "b'abx'\n"
    one.kill()
print("ok sandboxes")

full = Sandbox.create(volume_mounts={"/data": data})
fails(Exception, lambda: full.commands.run("dd if=/dev/zero of=/data/full bs=1M count=%d; sleep 100" % (ROOM + 8), timeout=100))
for _ in range(600):  # until the volume is counted
    try:
        Sandbox.create(volume_mounts={"/data": data}).kill()
    except Exception as error:
        assert "more than it may" in str(error), error
        break
    time.sleep(0.1)
else:
    raise AssertionError("a volume that is full is given to a sandbox")
fails(Exception, lambda: data.write_file("more", b"x"))
data.remove("full")
again = Sandbox.create(volume_mounts={"/data": data})
assert again.commands.run("cat /data/d.txt").stdout == "later\n"
again.kill()
full.kill()
assert Volume.destroy(data.volume_id) and Volume.list() == [] and not Volume.destroy(data.volume_id)
print("ok bounds")
