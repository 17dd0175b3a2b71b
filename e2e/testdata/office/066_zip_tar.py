# Archives: zip with a folder, tar.gz, and names of a Chinese Windows.
import io
import os
import tarfile
import zipfile

os.makedirs("data/sub")
for name, text in (("data/a.txt", "alpha" * 1000), ("data/sub/b.txt", "beta")):
    open(name, "w").write(text)
with zipfile.ZipFile("d.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for folder, _, files in os.walk("data"):
        for f in files:
            z.write(os.path.join(folder, f))
with tarfile.open("d.tar.gz", "w:gz") as t:
    t.add("data")
z = zipfile.ZipFile("d.zip")
print(sorted(z.namelist()), z.getinfo("data/a.txt").file_size, z.getinfo("data/a.txt").compress_size < 100, z.testzip())
t = tarfile.open("d.tar.gz")
print(sorted(m.name for m in t.getmembers() if m.isfile()), t.extractfile("data/sub/b.txt").read())
raw = io.BytesIO()
with zipfile.ZipFile(raw, "w") as z:
    z.writestr("XX.txt", "x")
gbk = raw.getvalue().replace(b"XX.txt", "表.txt".encode("gbk"))
print(zipfile.ZipFile(io.BytesIO(gbk), metadata_encoding="gbk").namelist())
