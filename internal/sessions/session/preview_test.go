package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/workspace"
	"cove/internal/testkit/testneeds"
)

// makeFiles writes files of each kind that is shown, and some that are traps.
const makeFiles = `
import io, json, os, sqlite3, struct, tarfile, zipfile
import pandas as pd
frame = pd.DataFrame({"city": ["Roma", "北京", "Wien"], "n": [1, 2, 3], "x": [0.5, None, 2.0]})
frame.to_csv("gbk.csv", index=False, encoding="gb18030")
frame.to_csv("semi.csv", index=False, sep=";")
frame.to_csv("wide.csv", index=False, encoding="utf-16")
frame.to_csv("t.tsv", index=False, sep="\t", encoding="utf-8-sig")
with pd.ExcelWriter("b.xlsx") as w:
    frame.to_excel(w, sheet_name="First", index=False)
    frame.tail(1).to_excel(w, sheet_name="Second", index=False)
pd.DataFrame({"n": range(5000)}).to_parquet("p.parquet", row_group_size=1000)
open("long.csv", "w").write("a,b\n" + "x" * (50 << 20) + ",1\n")
open("noise.bin", "wb").write(bytes(range(256)) * 40)
open("noise.xlsx", "wb").write(b"PK\3\4" + bytes(range(256)) * 40)
open("noise.parquet", "wb").write(bytes(range(256)) * 40)
open("code.py", "w").write("print('é')\n" * 10000)
open("broken.ipynb", "w").write("{")
json.dump({"cells": [{"cell_type": "code", "source": ["1+1"], "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}}]}, {"cell_type": "markdown", "source": "hi"}]}, open("n.ipynb", "w"))
json.dump({"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": ["2+2"], "outputs": [{"output_type": "pyout", "text": ["4"]}, {"output_type": "display_data", "png": "AAAA"}, {"output_type": "pyerr", "ename": "E", "evalue": "v"}]}]}]}, open("old.ipynb", "w"))
with zipfile.ZipFile("z.zip", "w") as z:
    for i in range(1500): z.writestr("f%d.txt" % i, "x" * i)
with tarfile.open("t.tar.gz", "w:gz") as t: t.add("gbk.csv")
base = sqlite3.connect("w.db"); base.execute("pragma journal_mode=wal"); base.execute("create table t (n)"); base.executemany("insert into t values (?)", [(n,) for n in range(1000)]); base.commit(); keep = base
base = sqlite3.connect("s.db"); base.execute("create table t (a integer, b text)"); base.execute("insert into t values (1, 'x')"); base.commit(); base.close()
open("i.png", "wb").write(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + bytes(5))
# a workbook that says to have 3 GB
source = zipfile.ZipFile("b.xlsx")
with zipfile.ZipFile("bomb.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
    for i in source.infolist():
        if i.filename != "xl/worksheets/sheet1.xml": z.writestr(i, source.read(i))
    with z.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as f:
        f.write(b"<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>")
        for i in range(3): f.write(b" " * (10 << 20))
data = open("bomb.xlsx", "rb").read()
real, lie = struct.pack("<I", (30 << 20) + 88), struct.pack("<I", 3 << 30)
at = data.rindex(b"xl/worksheets/sheet1.xml") - 46
size = data.index(struct.pack("<I", zipfile.ZipFile("bomb.xlsx").getinfo("xl/worksheets/sheet1.xml").file_size), at)
open("bomb.xlsx", "wb").write(data[:size] + lie + data[size + 4:])
os.mkfifo("pipe.csv"); os.symlink("/etc/passwd", "link.txt")
mine = 7
`

func previewText(p workspace.Preview) string {
	text, _ := json.Marshal(p)
	return string(text)
}

func TestPreviewsOfFiles(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := open(t, newGVisor(t), sandbox.Limits{})
	runCell(t, s, codeCheck(makeFiles, func(t *testing.T, r *run) {
		if got := r.transcript(); !strings.HasSuffix(got, "ok") {
			t.Fatal(got)
		}
	}))
	rows := `[["Roma",1,0.5],["北京",2,null],["Wien",3,2]]`
	for name, test := range map[string]struct {
		look workspace.Look
		want []string // parts of the answer
	}{
		"GB18030":           {workspace.Look{Path: "gbk.csv"}, []string{`"encoding":"gb18030"`, rows, `"total":3`, `{"name":"n","type":"int64"}`, `{"name":"x","type":"float64"}`, `{"name":"city","type":"str"}`}},
		"semicolon":         {workspace.Look{Path: "semi.csv"}, []string{`"encoding":"utf-8"`, rows, `"separator":";"`}},
		"UTF-16":            {workspace.Look{Path: "wide.csv"}, []string{`"encoding":"utf-16"`, rows}},
		"TSV":               {workspace.Look{Path: "t.tsv", Offset: 2, Limit: 1}, []string{`"encoding":"utf-8-sig"`, `[["Wien",3,2]]`, `"offset":2`, `"total":3`}},
		"workbook":          {workspace.Look{Path: "b.xlsx"}, []string{`"sheets":["First","Second"]`, `"sheet":"First"`, rows, `"total":3`}},
		"sheet":             {workspace.Look{Path: "b.xlsx", Sheet: "Second"}, []string{`[["Wien",3,2]]`, `"total":1`}},
		"Parquet":           {workspace.Look{Path: "p.parquet", Offset: 3998, Limit: 3}, []string{`[[3998],[3999],[4000]]`, `"total":5000`, `"type":"int64"`}},
		"code":              {workspace.Look{Path: "code.py"}, []string{`"kind":"text"`, `"truncated":true`, `é`}},
		"old notebook":      {workspace.Look{Path: "old.ipynb"}, []string{`"kind":"notebook"`, `{"kind":"code","source":"2+2","outputs":["4","(png)","E: v"]}`}},
		"notebook":          {workspace.Look{Path: "n.ipynb"}, []string{`"kind":"notebook"`, `{"kind":"code","source":"1+1","outputs":["2"]}`, `"source":"hi"`}},
		"zip":               {workspace.Look{Path: "z.zip"}, []string{`"kind":"archive"`, `"path":"f999.txt","size":999`, `"more":500`}},
		"tar":               {workspace.Look{Path: "t.tar.gz"}, []string{`"path":"gbk.csv"`}},
		"SQLite with a log": {workspace.Look{Path: "w.db"}, []string{`{"name":"t","columns":[{"name":"n","type":""}],"rows":1000}`}},
		"SQLite":            {workspace.Look{Path: "s.db"}, []string{`"type":"sqlite"`, `{"name":"t","columns":[{"name":"a","type":"INTEGER"},{"name":"b","type":"TEXT"}],"rows":1}`}},
		"image":             {workspace.Look{Path: "i.png"}, []string{`"kind":"image"`, `"type":"image/png"`, `"width":640`, `"height":480`}},
		"binary":            {workspace.Look{Path: "noise.bin"}, []string{`"kind":"binary"`, `"hex":"000102`}},
	} {
		if test.look.Limit == 0 {
			test.look.Limit = 100
		}
		p, err := s.Preview(t.Context(), test.look)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range test.want {
			if got := previewText(p); !strings.Contains(got, part) {
				t.Errorf("%s: no %s in %.2000s", name, part, got)
			}
		}
	}
	for path, want := range map[string]string{
		"bomb.xlsx": "unpacks to more", "long.csv": "longer than 1 MiB", "noise.xlsx": "cannot be read", "noise.parquet": "cannot be read", "broken.ipynb": "cannot be read",
		"pipe.csv": "no file", "link.txt": "cannot be", "gone.csv": "gone",
	} {
		_, err := s.Preview(t.Context(), workspace.Look{Path: path, Limit: 10})
		if p := problem.Of(err); err == nil || p.Code != "not_shown" || !strings.Contains(p.Message, want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	runCell(t, s, code("print(mine)", "stdout \"7\\n\"\nok"))
}

// A file is shown while code runs, and what looks at it leaves the code alone.
func TestAPreviewWhileCodeRuns(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := open(t, newGVisor(t), sandbox.Limits{})
	runCell(t, s, code("open('a.csv', 'w').write('a,b\\n1,2\\n');", "created a.csv 8\nok"))
	var both sync.WaitGroup
	both.Go(func() { runCell(t, s, code("import time; time.sleep(6); print(1)", "stdout \"1\\n\"\nok")) })
	for n := range 3 {
		both.Go(func() {
			p, err := s.Preview(t.Context(), workspace.Look{Path: "a.csv", Limit: 10})
			if err != nil || fmt.Sprint(p.Table.Rows) != "[[1 2]]" {
				t.Errorf("%d: %+v, %v", n, p, err)
			}
		})
	}
	both.Wait()
}
