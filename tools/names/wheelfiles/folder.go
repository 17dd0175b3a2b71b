package wheelfiles

import (
	"archive/zip"
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/python/deps/require"
)

// Folder returns the lists of files of every wheel and of every dist-info/RECORD below a folder, by the distributions' normalized names.
// What cannot be read is told to failed and left out.
func Folder(folder string, failed func(name string, err error)) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		var files []string
		base := entry.Name()
		switch parent := filepath.Base(filepath.Dir(name)); {
		case strings.HasSuffix(base, ".whl"):
			files, err = inWheel(name)
		case base == "RECORD" && strings.HasSuffix(parent, ".dist-info"):
			base = parent
			files, err = inRecord(name)
		default:
			return nil
		}
		if err != nil {
			failed(name, err)
			return nil
		}
		dist, _, _ := strings.Cut(base, "-")
		found[require.Normalize(dist)] = files
		return nil
	})
	return found, err
}

func inWheel(name string) ([]string, error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return Names(&r.Reader), nil
}

// Names returns the names of the files in a zip.
func Names(r *zip.Reader) []string {
	files := make([]string, 0, len(r.File))
	for _, f := range r.File {
		files = append(files, f.Name)
	}
	return files
}

func inRecord(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows := csv.NewReader(f)
	rows.FieldsPerRecord = -1
	all, err := rows.ReadAll()
	if err != nil {
		return nil, err
	}
	files := make([]string, 0, len(all))
	for _, row := range all {
		files = append(files, filepath.ToSlash(row[0]))
	}
	return files, nil
}
