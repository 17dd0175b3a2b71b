package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// outRecord knows which files of an out folder came from cove and were not changed since: those are replaced by later results of the same name, and all others are the user's. The record is kept in
// cove's data folder, and not in a folder that is full of the user's things.
type outRecord struct {
	path  string
	files map[string]outStamp
	added map[string]outStamp // of files, those of this command
}

// outStamp is how a file looked when it was put there.
type outStamp struct {
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
}

func stampOf(info fs.FileInfo) outStamp { return outStamp{info.Size(), info.ModTime().UnixNano()} }

// openOutRecord reads the record of a folder that is there. A record that cannot be read is an empty one: then results get other names than files that are there.
func openOutRecord(data, dir string) *outRecord {
	where, err := filepath.Abs(dir)
	if err == nil {
		where, err = filepath.EvalSymlinks(where)
	}
	r := &outRecord{added: map[string]outStamp{}}
	if err == nil {
		r.path = filepath.Join(data, "out", fmt.Sprintf("%x.json", sha256.Sum256([]byte(where))))
	}
	r.read()
	return r
}

func (r *outRecord) read() {
	text, err := os.ReadFile(r.path)
	if err != nil || json.Unmarshal(text, &r.files) != nil || r.files == nil {
		r.files = map[string]outStamp{}
	}
}

// has says whether a file is cove's, and as cove left it.
func (r *outRecord) has(name string, info fs.FileInfo) bool {
	stamp, known := r.files[name]
	return known && stamp == stampOf(info)
}

func (r *outRecord) add(name string, info fs.FileInfo) {
	r.files[name], r.added[name] = stampOf(info), stampOf(info)
}

// save writes the record, with what other commands have added meanwhile and without files that are not there any more.
func (r *outRecord) save(root *os.Root) {
	if len(r.added) == 0 || r.path == "" {
		return
	}
	r.read()
	maps.Copy(r.files, r.added)
	maps.DeleteFunc(r.files, func(name string, _ outStamp) bool {
		info, err := root.Lstat(name)
		return err != nil || !r.has(name, info)
	})
	text, err := json.Marshal(r.files)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.path), 0o700)
	}
	if err == nil {
		_ = durable.Replace(r.path, 0o600, bytes.NewReader(text)) // without it, the next results get other names
	}
}

// isUsers says whether there is a file of that name that cove has not put there, or that was changed since.
func (o *outFolder) isUsers(name string) bool {
	if o.isInput(name) {
		o.brought = append(o.brought, filepath.Join(o.dir, name))
		return true
	}
	info, err := o.root.Lstat(name)
	if o.force || err != nil || info.IsDir() || o.record.has(name, info) {
		return false
	}
	o.spared = append(o.spared, filepath.Join(o.dir, name))
	return true
}

// unwrittenResult is why the system did not write a result, without the name of the partial file, which nobody knows; other errors stay what they are.
func unwrittenResult(err error) error {
	cause := error(nil)
	if broken, ok := errors.AsType[*fs.PathError](err); ok && strings.HasPrefix(filepath.Base(broken.Path), partialPrefix) {
		cause = broken.Err
	}
	if broken, ok := errors.AsType[*os.LinkError](err); ok {
		cause = broken.Err
	}
	if cause == nil {
		return err
	}
	return problem.New(problem.FileUnwritable, "it cannot be written").WithCause(cause)
}

// partialPrefix is what the name of a result begins with while it is written.
const partialPrefix = ".cove-partial-"
