package config

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Document writes every setting with its meaning, its variable and its present value, as a config file that
// could be used. Secrets are said to be set, never shown.
func (c Config) Document(w io.Writer) error {
	state := "not there yet"
	if c.Found {
		state = "in use"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Settings of cove. File: %s (%s).\n# Later wins: defaults, this file, the environment, the command line.\n", c.File, state)
	for _, m := range c.Moved {
		fmt.Fprintf(&b, "# The file has %s, which is %s now.\n", m.From, m.To)
	}
	var table []string
	for _, f := range c.fields() {
		if !slices.Equal(f.table, table) {
			table = f.table
			fmt.Fprintf(&b, "\n[%s]\n", strings.Join(table, "."))
		}
		key, line := f.tag.Get("toml"), f.tag.Get("toml")+" = "+literal(f.value)
		if f.tag.Get("secret") != "" || hasPassword(f.value) {
			line = "# " + key + " is not set"
			if f.value.String() != "" {
				line = "# " + key + " is set; it is not shown"
			}
		}
		fmt.Fprintf(&b, "\n# %s\n# variable: %s\n%s\n", f.meaning(), f.tag.Get("env"), line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// meaning is what a setting does, with what it is when it is empty or 0.
func (f field) meaning() string {
	text := f.tag.Get("doc")
	if otherwise := f.tag.Get("default"); otherwise != "" && f.value.Kind() == reflect.String {
		text += "; empty: " + otherwise
	}
	if zero := f.tag.Get("zero"); zero != "" {
		text += "; 0 means " + zero
	}
	return text
}

func literal(v reflect.Value) string {
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return fmt.Sprintf("%q", s.String())
	}
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

// hasPassword says that a value is an address with a user's name and password in it, as those of package indexes often are.
func hasPassword(v reflect.Value) bool {
	if v.Kind() != reflect.String {
		return false
	}
	u, err := url.Parse(v.String())
	return err == nil && u.Host != "" && u.User != nil
}
