package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
)

// TestFiles reports the files that code creates and changes, and no others.
func TestFiles(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		host := filepath.Join(t.TempDir(), "数据.csv")
		if err := os.WriteFile(host, []byte("a,b\n1,2\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := s.PutFile(t.Context(), "in/数据.csv", host); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), "put.txt", strings.NewReader("put"), 0o644); err != nil {
			t.Fatal(err)
		}
		runRows(t, s, []row{
			{"inputs that are only read", []cell{code("open('in/数据.csv').read(), open('put.txt').read()", `result ('a,b\n1,2\n', 'put')`+"\nok")}},
			{"created", []cell{code("open('new.txt', 'w').write('12345');", "created new.txt 5\nok")}},
			{"nothing new", []cell{code("open('new.txt').read();", "ok")}},
			{"appended", []cell{code("open('new.txt', 'a').write('67');", "changed new.txt 7\nok")}},
			{"same size", []cell{code("open('new.txt', 'w').write('7654321');", "changed new.txt 7\nok")}},
			{"input changed", []cell{code("open('put.txt', 'w').write('more');", "changed put.txt 4\nok")}},
			{"unfinished", []cell{code("f = open('a.mp3', 'wb')", "ok"), code("f.write(b'x'); f.close()", "created a.mp3 1\nok"), code("open('a.mp3', 'w').close()", "changed a.mp3 0\nok")}},
			{"in subfolders", []cell{code("import os\nos.makedirs('out/deep')\nopen('out/deep/图.txt', 'w').write('x');", "created out/deep/图.txt 1\nok")}},
			{"several", []cell{code("for i in range(3): open(f's{i}', 'w').close()", "created s0 0\ncreated s1 0\ncreated s2 0\nok")}},
			{"removed", []cell{code("os.remove('s0')", "ok"), code("open('s0', 'w').close()", "created s0 0\nok")}},
			{"renamed", []cell{codeLike("os.rename('s0', 's9')", `created s9 0`+"\nok")}},
			{"by a child", []cell{code("!echo x > shell.txt", "created shell.txt 2\nok")}},
			{"before an error", []cell{code("open('half', 'w').write('h')\n1/0", "error ZeroDivisionError: division by zero\ncreated half 1\nerror 1")}},
			{"before death", []cell{code("f = open('dying', 'w'); f.write('d'); f.flush(); os._exit(1)", "created dying 1\nkernel_died 1 lost=kernel")}},
			{"outside", []cell{code("open('/tmp/cove-session-test', 'w').close()\nimport os; os.remove('/tmp/cove-session-test')", "ok")}},
			{"symlinks are not files", []cell{code("os.symlink('/etc/passwd', 'link')", "ok")}},
			{"libraries' caches stay out", []cell{codeLike("import matplotlib.pyplot as plt, seaborn, sklearn, IPython\nopen('m.py', 'w').write('x = 1')\nimport m", "created m.py 5\nok")}},
		})
		var got bytes.Buffer
		if err := s.Fetch(t.Context(), "out/deep/图.txt", &got); err != nil || got.String() != "x" {
			t.Errorf("fetched %q, %v", got.String(), err)
		}
		if head, err := s.ReadFile(t.Context(), "new.txt", 3); err != nil || string(head) != "765" {
			t.Errorf("read %q, %v", head, err)
		}
		if err := s.Fetch(t.Context(), "link", &got); err == nil {
			t.Error("fetched through a symlink")
		}
	})
}
