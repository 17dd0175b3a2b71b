package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cove/internal/core/problem"
)

// A secret can be in a file of its own instead of the setting: the file that the variable with _FILE at its end names, or the key with _file at its end in the config file,
// or the one that has the setting's key as its name in the folder $CREDENTIALS_DIRECTORY, which systemd fills from LoadCredential=.

const (
	fileVariable = "_FILE"
	fileKey      = "_file"
	// credentials is the variable with systemd's folder.
	credentials = "CREDENTIALS_DIRECTORY"
	// longestSecret bounds the file of a secret in bytes.
	longestSecret = 64 << 10
)

func (f field) secret() bool { return f.tag.Get("secret") != "" }

// readCredentials takes the secrets that are in systemd's folder.
func (c *Config) readCredentials(getenv func(string) string) (all error) {
	dir := getenv(credentials)
	if dir == "" {
		return nil
	}
	for _, f := range c.fields() {
		if !f.secret() {
			continue
		}
		path := filepath.Join(dir, f.key())
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		all = errors.Join(all, c.readSecret(f, path, "the credential "+f.key()))
	}
	return all
}

// readSecret sets a setting to what a file has, without the white space around it.
func (c *Config) readSecret(f field, path, named string) error {
	text, open, err := secretIn(path)
	if err != nil {
		return problem.New(problem.ConfigInvalid, fmt.Sprintf("the file %s, which %s names, has no secret that can be read", path, named)).WithCause(err).
			WithHint("see that it exists, that cove may read it, and that it has the secret and nothing else")
	}
	if open && filepath.Dir(path) != mountedSecrets && !slices.Contains(c.Exposed, path) {
		c.Exposed = append(c.Exposed, path)
	}
	return set(f.value, text)
}

// mountedSecrets is the folder in which Docker and Podman show a container its secrets: readable by all of its users, and by nobody else on the machine.
const mountedSecrets = "/run/secrets"

// secretIn reads a file. open says that every user of the machine can do so.
func secretIn(path string) (text string, open bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", false, err
	}
	all, err := io.ReadAll(io.LimitReader(file, longestSecret+1))
	all = bytes.TrimSpace(all)
	switch {
	case err != nil:
		return "", false, err
	case len(all) == 0:
		return "", false, errors.New("it is empty")
	case len(all) > longestSecret:
		return "", false, fmt.Errorf("it has more than %d bytes", longestSecret)
	}
	return string(all), info.Mode().Perm()&0o004 != 0, nil
}

// readVariable sets a setting from the variable with its name, or from the file that another one names.
func (c *Config) readVariable(f field, getenv func(string) string) error {
	name := f.tag.Get("env")
	text, path := getenv(name), ""
	if f.secret() {
		path = getenv(name + fileVariable)
	}
	switch {
	case text != "" && path != "":
		return problem.New(problem.ConfigInvalid, "the variables "+name+" and "+name+fileVariable+" are both set").WithHint("keep one of them")
	case path != "":
		return c.readSecret(f, path, "the variable "+name+fileVariable)
	case text == "":
		return nil
	}
	if err := set(f.value, text); err != nil {
		return problem.New(problem.ConfigInvalid, "the variable "+name+" has a value that does not fit").WithCause(err)
	}
	return nil
}

// secretFiles takes the secrets whose files the config file names, and returns the keys that do so.
func (c *Config) secretFiles(tables map[string]any) (known []string, err error) {
	for _, f := range c.fields() {
		if !f.secret() {
			continue
		}
		value, there := lookUp(tables, append(f.table[:len(f.table):len(f.table)], f.tag.Get("toml")+fileKey))
		if !there {
			continue
		}
		key := f.key() + fileKey
		path, ok := value.(string)
		_, both := lookUp(tables, f.path())
		switch {
		case both:
			return nil, problem.New(problem.ConfigInvalid, fmt.Sprintf("the config file %s sets %s and %s", c.File, f.key(), key)).WithHint("keep one of them")
		case !ok || !filepath.IsAbs(path):
			return nil, problem.New(problem.ConfigInvalid, fmt.Sprintf("the config file %s has %s, which must be the absolute path of a file", c.File, key))
		}
		if err := c.readSecret(f, path, key); err != nil {
			return nil, err
		}
		known = append(known, key)
	}
	return known, nil
}

func lookUp(tables map[string]any, path []string) (any, bool) {
	for _, name := range path[:len(path)-1] {
		next, ok := tables[name].(map[string]any)
		if !ok {
			return nil, false
		}
		tables = next
	}
	value, ok := tables[path[len(path)-1]]
	return value, ok
}
