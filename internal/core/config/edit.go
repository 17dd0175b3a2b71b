package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
)

// Setting is a setting as `cove config get` shows it.
type Setting struct {
	Key      string // sandbox.memory
	Variable string // COVE_MEMORY
	Value    string // "" for a secret
	Secret   bool   // it is not shown
	Set      bool   // of a secret: it has a value
	Meaning  string
}

// Setting returns a setting by its key, such as sandbox.memory, or by its variable. Problems: config_unknown_key.
func (c Config) Setting(name string) (Setting, error) {
	f, err := c.field(name)
	if err != nil {
		return Setting{}, err
	}
	s := Setting{Key: f.key(), Variable: f.tag.Get("env"), Secret: f.tag.Get("secret") != "" || hasPassword(f.value), Meaning: f.meaning()}
	text := fmt.Sprint(f.value.Interface())
	if s.Secret {
		s.Set = text != ""
	} else {
		s.Value = text
	}
	return s, nil
}

func (c *Config) field(name string) (field, error) {
	all := c.fields()
	for _, f := range all {
		if name == f.key() || strings.EqualFold(name, f.tag.Get("env")) {
			return f, nil
		}
	}
	p := problem.New(problem.ConfigUnknownKey, fmt.Sprintf("there is no setting %.80q", name)).WithHint("`cove config` shows every setting")
	last := name[strings.LastIndex(name, ".")+1:]
	for _, f := range all {
		if f.tag.Get("toml") == last {
			return field{}, p.WithHint("did you mean " + f.key() + "? `cove config` shows every setting")
		}
	}
	return field{}, p
}

// SetInFile writes a setting into the config file, which it makes where there is none, and leaves all else in the file as it is. An empty text takes the setting out of the file, so that
// its default holds again. Nothing is written where the settings would have a mistake then. Problems: config_unknown_key, config_invalid, config_unreadable.
func (c Config) SetInFile(name, text string) error {
	f, err := c.field(name)
	if err != nil {
		return err
	}
	line := ""
	if text != "" {
		if err := set(f.value, text); err != nil {
			return problem.New(problem.ConfigInvalid, fmt.Sprintf("%s cannot be %.100q", f.key(), text)).WithCause(err)
		}
		line = f.tag.Get("toml") + " = " + literal(f.value)
		if list, ok := f.value.Interface().(List); ok {
			line = f.tag.Get("toml") + " = " + list.quoted()
		}
	}
	old, err := os.ReadFile(c.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.ConfigUnreadable, "cannot read the config file "+c.File).WithCause(err)
	}
	next := edited(string(old), f, line)
	checked := Default(func(string) string { return "" })
	checked.File, checked.Folders = c.File, c.Folders
	if err := checked.decode(next); err != nil {
		return err
	}
	if err := checked.Validate(); err != nil {
		return err
	}
	return writeWhole(c.File, []byte(next))
}

func (l List) quoted() string {
	var out []string
	for _, one := range l {
		out = append(out, fmt.Sprintf("%q", one))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// edited is a file with one line in the place of the setting's, or without it.
func edited(text string, f field, line string) string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	header, key := "["+strings.Join(f.table, ".")+"]", f.tag.Get("toml")
	at, inside := -1, false // where the table's content begins
	for n, l := range lines {
		bare := strings.TrimSpace(l)
		if strings.HasPrefix(bare, "[") {
			inside = strings.HasPrefix(strings.ReplaceAll(bare, " ", ""), header)
			if inside {
				at = n + 1
			}
			continue
		}
		name, _, assigned := strings.Cut(bare, "=")
		if inside && assigned && strings.TrimSpace(name) == key {
			end := n + 1
			for end < len(lines) && !complete(strings.Join(lines[n:end], "")) { // a value on several lines
				end++
			}
			return strings.Join(replaced(lines, n, end, line), "")
		}
	}
	switch {
	case line == "":
		return strings.Join(lines, "")
	case at >= 0:
		return strings.Join(replaced(lines, at, at, line), "")
	case len(lines) > 0:
		lines = append(lines, "\n")
	}
	return strings.Join(append(lines, header+"\n", line+"\n"), "")
}

// complete says that text is whole TOML.
func complete(text string) bool {
	var into map[string]any
	_, err := toml.Decode(text, &into)
	return err == nil
}

func replaced(lines []string, from, to int, line string) []string {
	var with []string
	if line != "" {
		with = []string{line + "\n"}
	}
	return slices.Concat(lines[:from], with, lines[to:])
}

// Template is a config file that changes nothing: every setting with its meaning and its default, as comments.
func Template(getenv func(string) string) ([]byte, error) {
	c := Default(getenv)
	var b bytes.Buffer
	if err := c.Document(&b); err != nil {
		return nil, err
	}
	lines := strings.Split(b.String(), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "[") })
	out := []string{"# " + lang.Sprintf("Settings of cove. What is commented out has its default; `cove config` shows what holds."), ""}
	for _, l := range lines[max(at, 0):] {
		if l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "[") {
			l = "#" + l
		}
		out = append(out, l)
	}
	return []byte(strings.Join(out, "\n")), nil
}

// Init writes Template where no config file is. Problems: config_exists, config_unreadable.
func (c Config) Init(getenv func(string) string) error {
	text, err := Template(getenv)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.File); err == nil {
		return problem.New(problem.ConfigExists, "the config file is there already: "+c.File).WithHint("edit it, or change single settings with cove config set")
	}
	return writeWhole(c.File, text)
}

// writeWhole replaces a file, which may have keys in it and is its owner's alone; a link stays one.
func writeWhole(path string, text []byte) error {
	failed := func(err error) error {
		return problem.New(problem.ConfigUnreadable, "cannot write the config file "+path).WithCause(err)
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return failed(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*.toml")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}
