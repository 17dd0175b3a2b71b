package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// entry is what the index said about one project: one line of the evidence file.
type entry struct {
	Project string   `json:"project"`
	File    string   `json:"file,omitempty"`    // the wheel that was looked into
	Modules []string `json:"modules,omitempty"` // what it provides
	From    string   `json:"from,omitempty"`    // "metadata" (PEP 794) or "files"
	None    string   `json:"none,omitempty"`    // why there is nothing: no wheel, no such project, ...
}

// evidence is a file that only grows: a run that was killed loses at most the line it was writing.
type evidence struct {
	mu      sync.Mutex
	file    *os.File
	entries map[string]entry
}

func openEvidence(name string) (*evidence, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("the evidence: %w", err)
	}
	e := &evidence{file: f, entries: map[string]entry{}}
	text, err := os.ReadFile(name)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the evidence: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[:whole]) {
		var one entry
		if err := json.Unmarshal(line, &one); err == nil && one.Project != "" {
			e.entries[one.Project] = one
		}
	}
	// A torn last line is the mark of a killed run.
	if err := f.Truncate(int64(whole)); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(int64(whole), 0); err != nil {
		f.Close()
		return nil, err
	}
	return e, nil
}

func (e *evidence) has(project string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.entries[project]
	return ok
}

func (e *evidence) add(one entry) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entries[one.Project] = one
	_, err = e.file.Write(append(line, '\n'))
	return err
}

func (e *evidence) close() error { return e.file.Close() }
