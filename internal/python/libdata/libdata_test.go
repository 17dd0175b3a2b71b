package libdata_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/libdata"
)

// archive is a zip with these files, by name.
func archive(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for n := 0; n < len(files); n += 2 {
		w, err := z.Create(files[n])
		if err == nil {
			_, err = w.Write([]byte(files[n+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sumOf(text string) string { s := md5.Sum([]byte(text)); return hex.EncodeToString(s[:]) }

// mirror serves files by their paths, as the places of the libraries do.
func mirror(t *testing.T, files map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const commit = "0123456789012345678901234567890123456789"

func places(t *testing.T) map[string]string {
	punkt, corpus := archive(t, "punkt_tab/", "", "punkt_tab/english/a.tab", "words"), archive(t, "stop/english", "the\n")
	weights := sha256.Sum256([]byte("weights"))
	return map[string]string{
		"index.xml": `<nltk_data><packages>
			<package id="punkt_tab" subdir="tokenizers" unzip="1" checksum="` + sumOf(punkt) + `" url="elsewhere"/>
			<package id="stop" subdir="corpora" unzip="0" checksum="` + sumOf(corpus) + `"/>
			<package id="bad" subdir="corpora" unzip="1" checksum="00"/>
			<package id="evil" subdir="../../etc" unzip="1" checksum="00"/>
			<package id="slip" subdir="corpora" unzip="1" checksum="` + sumOf(archive(t, "slip/../../../x", "y")) + `"/>
			</packages><collections><collection id="both"><item ref="punkt_tab"/><item ref="stop"/></collection></collections></nltk_data>`,
		"packages/tokenizers/punkt_tab.zip": punkt, "packages/corpora/stop.zip": corpus, "packages/corpora/bad.zip": punkt,
		"packages/corpora/slip.zip": archive(t, "slip/../../../x", "y"),
		"tips.csv":                  "total_bill,tip\n1,2\n",
		"en_small-3.8.0/en_small-3.8.0-py3-none-any.whl": archive(t, "en_small/__init__.py", "x = 1", "en_small-3.8.0.dist-info/METADATA", "Name: en_small", "evil.pth", "import os"),
		"api/models/org/tiny/revision/main": `{"sha":"` + commit + `","siblings":[{"rfilename":"config.json"},{"rfilename":"model.safetensors","lfs":{"sha256":"` + hex.EncodeToString(weights[:]) + `"}},
			{"rfilename":"pytorch_model.bin"},{"rfilename":"onnx/model.onnx"}]}`,
		"org/tiny/resolve/" + commit + "/config.json": "{}", "org/tiny/resolve/" + commit + "/model.safetensors": "weights",
		"api/datasets/org/rows/revision/v1":                    `{"sha":"` + commit + `","siblings":[{"rfilename":"data/a.csv"}]}`,
		"datasets/org/rows/resolve/" + commit + "/data/a.csv":  "a\n1\n",
		"api/models/org/changed/revision/main":                 `{"sha":"` + commit + `","siblings":[{"rfilename":"a.safetensors","lfs":{"sha256":"00"}}]}`,
		"org/changed/resolve/" + commit + "/a.safetensors":     "other",
		"api/models/org/escape/revision/main":                  `{"sha":"` + commit + `","siblings":[{"rfilename":"../../../../escape"}]}`,
		"org/escape/resolve/" + commit + "/../../../../escape": "x",
		"escape": "x",
	}
}

func open(t *testing.T) (*libdata.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := libdata.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func add(t *testing.T, s *libdata.Store, item, place string, most int64) (libdata.Record, error) {
	t.Helper()
	i, err := libdata.ParseItem(item)
	if err != nil {
		t.Fatal(err)
	}
	return s.Add(t.Context(), i, libdata.Options{Place: place, Most: most})
}

func paths(r libdata.Record) (all []string) {
	for _, f := range r.Files {
		all = append(all, f.Path)
	}
	return all
}

func TestAdd(t *testing.T) {
	t.Parallel()
	place := mirror(t, places(t))
	folder := t.TempDir()
	for name, text := range map[string]string{"cal_housing_py3.pkz": "pickle", "sub/b.csv": "b", "en_small-3.7.0-py3-none-any.whl": archive(t, "en_small/old.py", "")} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	const tiny, rows = "huggingface/models--org--tiny/", "huggingface/datasets--org--rows/"
	for _, c := range []struct {
		item, place string
		want        []string
	}{
		{"nltk:punkt_tab", place, []string{"nltk/tokenizers/punkt_tab/english/a.tab"}},
		{"nltk:stop", place + "/", []string{"nltk/corpora/stop.zip"}},
		{"nltk:both", place, []string{"nltk/corpora/stop.zip", "nltk/tokenizers/punkt_tab/english/a.tab"}},
		{"seaborn:tips", place, []string{"seaborn/tips.csv"}},
		{"spacy:en_small==3.8.0", place, []string{"modules/en_small-3.8.0.dist-info/METADATA", "modules/en_small/__init__.py"}},
		{"spacy:en_small", folder, []string{"modules/en_small/old.py"}},
		{"huggingface:org/tiny", place, []string{tiny + "refs/main", tiny + "snapshots/" + commit + "/config.json", tiny + "snapshots/" + commit + "/model.safetensors"}},
		{"huggingface:datasets/org/rows==v1", place, []string{rows + "refs/v1", rows + "snapshots/" + commit + "/data/a.csv"}},
		{"sklearn:california_housing", folder, []string{"sklearn/cal_housing_py3.pkz"}},
		{"files:mine", folder, []string{"files/mine/cal_housing_py3.pkz", "files/mine/en_small-3.7.0-py3-none-any.whl", "files/mine/sub/b.csv"}},
	} {
		s, _ := open(t)
		r, err := add(t, s, c.item, c.place, 1<<20)
		if err != nil || !slices.Equal(paths(r), c.want) {
			t.Errorf("%s brings %v (%v), not %v", c.item, paths(r), err, c.want)
			continue
		}
		for _, f := range r.Files {
			text, err := os.ReadFile(filepath.Join(s.Root(), f.Path))
			if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(text)) != f.Size {
				t.Errorf("%s: %s is not as recorded: %v", c.item, f.Path, err)
			}
		}
		if again, err := add(t, s, c.item, c.place, 1<<20); err != nil || !slices.Equal(paths(again), c.want) {
			t.Errorf("%s cannot be fetched anew: %v", c.item, err)
		}
	}
}

func TestAddFails(t *testing.T) {
	t.Parallel()
	place := mirror(t, places(t))
	for item, want := range map[string]problem.Code{
		"nltk:nothing": problem.DataUnknown, "nltk:bad": problem.DataDamaged, "nltk:evil": problem.DataDamaged, "nltk:slip": problem.DataDamaged, "seaborn:nothing": problem.DataUnknown,
		"spacy:en_small": problem.DataInvalid, "spacy:en_small==9.9.9": problem.DataUnknown, "huggingface:org/nothing": problem.DataUnknown, "huggingface:org/changed": problem.DataDamaged,
		"huggingface:org/escape": problem.DataDamaged, "sklearn:california_housing": problem.DataInvalid, "sklearn:nothing": problem.DataUnknown, "files:mine": problem.DataInvalid,
	} {
		s, dir := open(t)
		_, err := add(t, s, item, place, 1<<20)
		if !problem.Has(err, want) {
			t.Errorf("%s: %v, not %v", item, err, want)
		}
		if _, err := add(t, s, "seaborn:tips", place, 5); !problem.Has(err, problem.DataTooLarge) {
			t.Errorf("more than allowed: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Add(gone, libdata.Item{Library: "seaborn", Name: "tips"}, libdata.Options{Place: place}); err == nil {
			t.Error("it goes on after its context has ended")
		}
		if _, err := add(t, s, "seaborn:tips", "http://127.0.0.1:1", 0); !problem.Has(err, problem.DataUnreachable) {
			t.Errorf("without a server: %v", err)
		}
		if _, err := add(t, s, "seaborn:tips", "/no/such/folder", 0); !problem.Has(err, problem.DataUnreachable) {
			t.Errorf("without a folder: %v", err)
		}
		left := 0
		if err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				left++
			}
			return err
		}); err != nil || left > 0 {
			t.Errorf("%s: %d files are left (%v)", item, left, err)
		}
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	place := mirror(t, places(t))
	for _, item := range []string{"nltk:stop", "nltk:both", "seaborn:tips"} {
		if _, err := add(t, s, item, place, 0); err != nil {
			t.Fatal(err)
		}
	}
	stop := filepath.Join(s.Root(), "nltk/corpora/stop.zip")
	both, _ := libdata.ParseItem("nltk:both")
	if _, err := s.Remove(both); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stop); err != nil {
		t.Errorf("what another item has too is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Root(), "nltk/tokenizers")); err == nil {
		t.Error("an empty folder is left")
	}
	if _, err := s.Remove(both); !problem.Has(err, problem.DataUnknown) {
		t.Errorf("removed twice: %v", err)
	}
	all, err := s.List()
	if err != nil || len(all) != 2 || all[0].Item != "nltk:stop" || all[1].Item != "seaborn:tips" {
		t.Errorf("there are %v (%v)", all, err)
	}
	for _, r := range all {
		i, _ := libdata.ParseItem(r.Item)
		if _, err := s.Remove(i); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"nltk", "seaborn"} { // which libraries would try to make
		if entries, err := os.ReadDir(filepath.Join(s.Root(), name)); err != nil || len(entries) > 0 {
			t.Errorf("%s has %v (%v)", name, entries, err)
		}
	}
}

func TestParseItem(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"nltk:punkt_tab": true, "spacy:en_core_web_sm==3.8.0": true, "huggingface:org/name-2.1": true, "files:a": true,
		"": false, "nltk": false, "nltk:": false, "pip:x": false, "nltk:../x": false, "files:a/../../b": false, "files:/etc": false, "nltk:a b": false, "huggingface:a//b": false,
		"nltk:" + strings.Repeat("x", 300): false,
	} {
		i, err := libdata.ParseItem(text)
		if (err == nil) != ok || ok && i.String() != text || !ok && problem.Of(err).Hint == "" {
			t.Errorf("%q: %v, %v", text, i, err)
		}
	}
}
