package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// The files of a run's folder.
const (
	planFile       = "run.json"
	recordsFile    = "results.jsonl"
	transcriptsDir = "transcripts"
	lockFile       = ".lock"
	// DatabaseFile keeps the conversations of a run, as the history keeps others.
	DatabaseFile = "cove.db"
	// ReportPage, ReportJSON and ReportText are the reports.
	ReportPage = "report.html"
	ReportJSON = "report.json"
	ReportText = "report.txt"
)

// Bounds of what is read of a folder, in bytes: others may have written there.
const (
	longestLine    = 16 << 20
	largestPlan    = 64 << 20
	largestRecords = 4 << 30
)

// Folder is the folder of a run, which one process at a time works in.
type Folder struct {
	Path string
	lock *os.File // lockFile, which the kernel unlocks when the process ends; the folder itself is locked by those who make a database in it

	mu      sync.Mutex // guards what follows
	records *os.File
	done    map[string]Record // by task, the newest
	spent   Spent
}

// Spent is what all records of a folder took, also those that were replaced.
type Spent struct {
	Tokens int64
	Cost   float64
}

// OpenFolder opens the folder of a run for plan, and makes it when it is missing. Where it has a run already, that goes on: it must be of the same plan. What a
// killed process left of a line that it was writing is removed. Problems: eval_folder, eval_other, eval_busy.
func OpenFolder(path string, plan Plan) (_ *Folder, err error) {
	if err := os.MkdirAll(filepath.Join(path, transcriptsDir), 0o755); err != nil {
		return nil, unusable(path, err)
	}
	f := &Folder{Path: path, done: map[string]Record{}}
	if f.lock, err = os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, unusable(path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := unix.Flock(int(f.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, problem.New(problem.EvalBusy, "another command works on the run in "+path).WithHint("wait for it, or give --run another folder")
	}
	there, err := ReadPlan(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = f.WritePlan(plan)
	case err == nil:
		err = plan.sameAs(there, path)
	}
	if err != nil {
		return nil, err
	}
	return f, f.open()
}

// open reads the records and opens their file for more.
func (f *Folder) open() error {
	path := filepath.Join(f.Path, recordsFile)
	records, whole, err := readRecords(path)
	if err != nil {
		return err
	}
	if f.records, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return unusable(f.Path, err)
	}
	if err := f.records.Truncate(whole); err != nil {
		return unusable(f.Path, err)
	}
	for _, r := range records {
		f.note(r)
	}
	return durable.SyncFolder(f.Path)
}

// note takes a record in. The caller holds mu, or is alone.
func (f *Folder) note(r Record) {
	f.done[r.Task] = r
	f.spent.Tokens += r.Tokens.Input + r.Tokens.Output
	f.spent.Cost += r.Cost.Amount
}

// WritePlan writes what the run is about.
func (f *Folder) WritePlan(plan Plan) error {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return fmt.Errorf("write down the plan of a run: %w", err)
	}
	if err := durable.Replace(filepath.Join(f.Path, planFile), 0o644, bytes.NewReader(append(text, '\n'))); err != nil {
		return unusable(f.Path, err)
	}
	return nil
}

// Append adds records, and returns when they are on the disk. Those of a series come in one call.
func (f *Folder) Append(records ...Record) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	for _, r := range records {
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("write down a record: %w", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.records.Write(text.Bytes()); err != nil {
		return unusable(f.Path, err)
	}
	if err := f.records.Sync(); err != nil {
		return unusable(f.Path, err)
	}
	for _, r := range records {
		f.note(r)
	}
	return nil
}

// Done returns the newest record of a task.
func (f *Folder) Done(task string) (Record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.done[task]
	return r, ok
}

// Spent returns what the run took so far.
func (f *Folder) Spent() Spent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spent
}

// Close lets other processes work in the folder.
func (f *Folder) Close() error {
	var err error
	if f.records != nil {
		err = f.records.Close()
	}
	return errors.Join(err, f.lock.Close())
}

// ReadPlan reads what the run in a folder is about. It is fs.ErrNotExist when there is none. Problems: eval_folder.
func ReadPlan(path string) (Plan, error) {
	var p Plan
	f, err := os.Open(filepath.Join(path, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	if err != nil {
		return p, unusable(path, err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, largestPlan)).Decode(&p); err != nil {
		return p, unusable(path, fmt.Errorf("%s is damaged: %w", planFile, err))
	}
	if p.Form != planForm {
		return p, problem.New(problem.EvalFolder, fmt.Sprintf("the run in %s has the form %d, and this cove reads the form %d", path, p.Form, planForm)).
			WithHint("use the cove that made it, or give --run another folder")
	}
	return p, nil
}

// ReadRecords reads the newest record of each task of a run, in the order of its plan. Problems: eval_folder.
func ReadRecords(path string, plan Plan) ([]Record, error) {
	all, _, err := readRecords(filepath.Join(path, recordsFile))
	if err != nil {
		return nil, err
	}
	newest := map[string]Record{}
	for _, r := range all {
		newest[r.Task] = r
	}
	return inOrder(plan.Tasks, func(id string) (Record, bool) { r, ok := newest[id]; return r, ok }), nil
}

func inOrder(ids []string, of func(id string) (Record, bool)) []Record {
	var out []Record
	for _, id := range ids {
		if r, ok := of(id); ok {
			out = append(out, r)
		}
	}
	return out
}

// readRecords reads records until the end, or until a line that is not complete. whole is how many bytes the complete ones have.
func readRecords(path string) (records []Record, whole int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, unusable(filepath.Dir(path), err)
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, largestRecords))
	lines.Buffer(nil, longestLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, 0, unusable(filepath.Dir(path), fmt.Errorf("line %d of %s is damaged: %w", len(records)+1, recordsFile, err))
		}
		records, whole = append(records, r), whole+int64(len(lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		return nil, 0, unusable(filepath.Dir(path), err)
	}
	return records, whole, nil
}

// wholeLines splits a text after each line end, and leaves out what comes after the last.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

func unusable(path string, err error) error {
	return problem.New(problem.EvalFolder, "the folder of the run, "+path+", cannot be used").WithCause(err).WithHint("give --run another folder")
}
