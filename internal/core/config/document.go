package config

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"cove/internal/core/lang"
)

// Document writes every setting with its meaning, in the language of the process, its variable and its present value, as a config file that
// could be used. Secrets are said to be set, never shown.
func (c Config) Document(w io.Writer) error {
	state := lang.Text("not there yet")
	if c.Found {
		state = lang.Text("in use")
	}
	var b strings.Builder
	comment := func(text string) { b.WriteString("# " + text + "\n") }
	comment(lang.Sprintf("Settings of cove. File: %s (%s).", c.File, state))
	comment(lang.Sprintf("Later wins: defaults, this file, the environment, the command line."))
	for _, m := range c.Moved {
		comment(lang.Sprintf("The file has %s, which is %s now.", m.From, m.To))
	}
	var table []string
	for _, f := range c.fields() {
		if !slices.Equal(f.table, table) {
			table = f.table
			fmt.Fprintf(&b, "\n[%s]\n", strings.Join(table, "."))
		}
		b.WriteString("\n")
		comment(lang.Help(f.meaning()))
		comment(lang.Sprintf("variable: %s", f.tag.Get("env")))
		switch key, secret := f.tag.Get("toml"), f.tag.Get("secret") != "" || hasPassword(f.value); {
		case secret && f.value.String() != "":
			comment(lang.Sprintf("%s is set; it is not shown", key))
		case secret:
			comment(lang.Sprintf("%s is not set", key))
		default:
			b.WriteString(key + " = " + literal(f.value) + "\n")
		}
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
