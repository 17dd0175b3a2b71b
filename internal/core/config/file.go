package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/BurntSushi/toml"

	"cove/internal/core/problem"
)

// readFile takes what the config file says. A file with a mistake counts for nothing.
func (c *Config) readFile(required bool) error {
	text, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return nil
	}
	if err != nil {
		return problem.New(problem.ConfigUnreadable, "cannot read the config file "+c.File).WithCause(err)
	}
	c.Found = true
	next := *c
	if err := next.decode(string(text)); err != nil {
		return err
	}
	*c = next
	return nil
}

// decode reads settings by their keys in tables, and by those at the top that files had before there were tables.
func (c *Config) decode(text string) error {
	mistake := func(err error) error {
		return problem.New(problem.ConfigInvalid, "the config file "+c.File+" has a mistake").WithCause(err).
			WithHint("run `cove config` to see every setting and what it takes")
	}
	var top map[string]toml.Primitive
	meta, err := toml.Decode(text, &top)
	if err != nil {
		return mistake(err)
	}
	for _, f := range c.fields() {
		flat := f.tag.Get("flat")
		if flat == "" || !meta.IsDefined(flat) || meta.Type(flat) == "Hash" {
			continue
		}
		if meta.IsDefined(f.path()...) {
			return problem.New(problem.ConfigInvalid, fmt.Sprintf("the config file %s sets %s and %s, which are the same setting", c.File, flat, f.key())).
				WithHint("keep " + f.key() + " and remove " + flat)
		}
		if err := meta.PrimitiveDecode(top[flat], f.value.Addr().Interface()); err != nil {
			return mistake(fmt.Errorf("%s: %w", flat, err))
		}
		c.Moved = append(c.Moved, Moved{From: flat, To: f.key()})
		delete(top, flat)
	}
	groups := reflect.ValueOf(c).Elem()
	for i := range groups.NumField() {
		name := groups.Type().Field(i).Tag.Get("toml")
		value, there := top[name]
		if !there {
			continue
		}
		if err := meta.PrimitiveDecode(value, groups.Field(i).Addr().Interface()); err != nil {
			return mistake(fmt.Errorf("%s: %w", name, err))
		}
		delete(top, name)
	}
	var tables map[string]any
	if _, err := toml.Decode(text, &tables); err != nil {
		return mistake(err)
	}
	files, err := c.secretFiles(tables)
	if err != nil {
		return err
	}
	unknown := slices.Sorted(maps.Keys(top))
	for _, key := range meta.Undecoded() {
		if !slices.Contains(files, key.String()) {
			unknown = append(unknown, key.String())
		}
	}
	if len(unknown) > 0 {
		return problem.New(problem.ConfigUnknownKey,
			fmt.Sprintf("the config file %s has a setting that cove does not know: %s", c.File, unknown[0])).
			WithHint("run `cove config` to see every setting")
	}
	return nil
}
