package session_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/workspace"
)

// makeNames makes files whose names are not UTF-8, as unzip does of archives of Windows, and symlinks of each kind.
const makeNames = `
import os
os.mkdir(b"d\xfe"); os.mkdir("real"); os.makedirs(".tools/deep")
for name, text in {b"caf\xe9.csv": "a,b\n1,2\n", b"d\xfe/" + "销售.txt".encode("gbk"): "in", b"100%.txt": "plain", b"real/r.txt": "real", b"/tmp/cove-outside.txt": "outside"}.items():
    with open(name, "w") as f: f.write(text)
for name, to in {"near.txt": "real/r.txt", "full.txt": os.path.abspath("real/r.txt"), "twice.txt": "near.txt", "folder": "real", "real/up": "..",
                 "out.txt": "/tmp/cove-outside.txt", "users": "/etc/passwd", "dangling": "gone", "loop": "loop"}.items(): os.symlink(to, name)
`

// TestOddNames has files whose names are not UTF-8, and symlinks to files in the workspace, be listed, told of and got as what they are. What symlinks lead to
// outside is not to be had.
func TestOddNames(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		runCell(t, s, code(makeNames, "created 100%.txt 5\ncreated caf%E9.csv 8\ncreated d%FE/%CF%FA%CA%DB.txt 2\ncreated full.txt 4\ncreated near.txt 4\ncreated real/r.txt 4\ncreated twice.txt 4\nok"))
		want := map[string]string{
			"caf%E9.csv": "a,b\n1,2\n", "d%FE/%CF%FA%CA%DB.txt": "in", "100%.txt": "plain", "real/r.txt": "real", "near.txt": "real", "twice.txt": "real", "full.txt": "real",
		}
		for path, text := range want {
			var got bytes.Buffer
			if err := s.Fetch(t.Context(), path, &got); err != nil || got.String() != text {
				t.Errorf("%s is %q, %v, want %q", path, got.String(), err, text)
			}
			if at, err := s.Stat(t.Context(), path); err != nil || at.Size != int64(len(text)) || at.Path != path {
				t.Errorf("%s is %+v, %v", path, at, err)
			}
		}
		for _, path := range []string{"out.txt", "users", "dangling", "loop", "real/up/../../etc/passwd"} {
			if err := s.Fetch(t.Context(), path, new(bytes.Buffer)); err == nil {
				t.Errorf("%s was got", path)
			}
		}
		entries, _, err := s.List(t.Context(), "")
		var names []string
		for _, e := range entries {
			names = append(names, e.Path)
		}
		if top := []string{".tools", "100%.txt", "caf%E9.csv", "d%FE", "full.txt", "near.txt", "real", "twice.txt"}; err != nil || !cmp.Equal(top, names) {
			t.Errorf("listed is %q, %v, want %q", names, err, top)
		}
		var packed bytes.Buffer
		wantCode(t, "archive", s.Archive(t.Context(), "", "zip", &packed), "")
		got := unzip(t, packed.Bytes())
		if left := "dangling\nfolder\nloop\nout.txt\nusers\nreal/up\n"; got["LEFT-OUT.txt"] != left {
			t.Errorf("left out of the archive is %q, want %q", got["LEFT-OUT.txt"], left)
		}
		delete(got, "LEFT-OUT.txt")
		maps.DeleteFunc(got, func(_, text string) bool { return text == "" }) // folders
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("archive: %s", diff)
		}
		err = s.UseFiles(t.Context(), true, func(f guestlink.Files) error {
			entries, _, unnamed, err := f.ListPath(t.Context(), "d%FE", 1)
			if err != nil || unnamed != 0 || len(entries) != 1 || entries[0].Path != "d%FE/%CF%FA%CA%DB.txt" {
				t.Errorf("listed in a folder is %+v, %d, %v", entries, unnamed, err)
			}
			return f.RemovePath(t.Context(), entries[0].Path, false)
		})
		wantCode(t, "remove", err, "")
		// Written under the name that it is listed by, it is the file that code knows.
		write(t, s, "caf%E9.csv", "a,b\n3,4\n")
		runCell(t, s, code(`sorted(os.listdir(b".")) == [b".tools", b"100%.txt", b"caf\xe9.csv", b"dangling", b"d\xfe", b"folder", b"full.txt", b"loop", b"near.txt", b"out.txt", b"real", b"twice.txt", b"users"], os.listdir(b"d\xfe"), open(b"caf\xe9.csv").read()`,
			"result (True, [], 'a,b\\n3,4\\n')\nok"))
		told, err := s.Tell(t.Context(), []string{"caf%E9.csv", "full.txt", "users"})
		if wanted := `1 row × 2 columns, name not in UTF-8: open it as os.fsdecode(b'caf\xe9.csv')`; err != nil || told[0].What != wanted || !slices.Contains(told[1].Lines, "real") || len(told[2].Lines) > 0 {
			t.Errorf("told is %+v, %v", told, err)
		}
		p, err := s.Preview(t.Context(), workspace.Look{Path: "caf%E9.csv", Limit: 10})
		if err != nil || p.Table == nil || !cmp.Equal(p.Table.Rows, [][]any{{3.0, 4.0}}) {
			t.Errorf("the preview is %+v, %v", p, err)
		}
	})
}
