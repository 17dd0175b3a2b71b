package cli_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"cove/internal/core/config"
)

// The options that docs/configuration.md names for settings are options of commands.
func TestOptionsOfSettings(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	for _, command := range [][]string{{"run"}, {"ask"}, {"serve"}, {"session", "resume"}, {"key", "create"}} {
		r := run(t, &scripted{}, nil, append(command, "--help")...)
		help.WriteString(r.out)
	}
	options, named := map[string]bool{}, 0
	for _, found := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(help.String(), -1) {
		options[found] = true
	}
	var look func(t reflect.Type)
	look = func(of reflect.Type) {
		for n := range of.NumField() {
			f := of.Field(n)
			if option := f.Tag.Get("flag"); option != "" {
				if named++; !options[option] {
					t.Errorf("%s: no command has %s", f.Name, option)
				}
			}
			if f.Type.Kind() == reflect.Struct {
				look(f.Type)
			}
		}
	}
	look(reflect.TypeFor[config.Config]())
	if named == 0 {
		t.Error("no setting has an option")
	}
}
