package config

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
)

// Document writes every setting with its meaning, its variable and its present value, as a config file that
// could be used. Secrets are said to be set, never shown.
func (c Config) Document(w io.Writer) error {
	state := "not there yet"
	if c.Found {
		state = "in use"
	}
	if _, err := fmt.Fprintf(w, "# Settings of cove. File: %s (%s).\n# Later wins: defaults, this file, the environment, the command line.\n", c.File, state); err != nil {
		return err
	}
	for _, f := range c.fields() {
		line := f.tag.Get("toml") + " = " + literal(f.value)
		if f.tag.Get("secret") != "" || hasPassword(f.value) {
			line = "# " + f.tag.Get("toml") + " is not set"
			if f.value.String() != "" {
				line = "# " + f.tag.Get("toml") + " is set; it is not shown"
			}
		}
		if _, err := fmt.Fprintf(w, "\n# %s\n# variable: %s\n%s\n", f.tag.Get("doc"), f.tag.Get("env"), line); err != nil {
			return err
		}
	}
	return nil
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
