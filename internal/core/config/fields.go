package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// field is a setting.
type field struct {
	tag   reflect.StructTag
	value reflect.Value
	table []string // of the file: ["quota", "project"]
}

// key is the setting's name: quota.project.disk.
func (f field) key() string { return strings.Join(f.path(), ".") }

func (f field) path() []string { return append(f.table[:len(f.table):len(f.table)], f.tag.Get("toml")) }

// fields lists the settings in their order.
func (c *Config) fields() []field { return fieldsOf(reflect.ValueOf(c).Elem(), nil) }

func fieldsOf(v reflect.Value, table []string) []field {
	var out []field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Tag.Get("env") != "":
			out = append(out, field{f.Tag, v.Field(i), table})
		case f.Type.Kind() == reflect.Struct:
			out = append(out, fieldsOf(v.Field(i), append(table[:len(table):len(table)], f.Tag.Get("toml")))...)
		}
	}
	return out
}

// negative says that a setting is a number below 0, or none at all (NaN): the config file and the command line can say so.
func (f field) negative() bool {
	switch {
	case f.value.CanInt():
		return f.value.Int() < 0
	case f.value.CanFloat():
		return !(f.value.Float() >= 0)
	}
	return false
}

// limitless says that a setting is 0 that must be above it.
func (f field) limitless() bool {
	return (f.value.CanInt() || f.value.CanFloat()) && f.value.IsZero() && f.tag.Get("zero") == ""
}

func (c *Config) readEnv(getenv func(string) string) error {
	var all error
	for _, f := range c.fields() {
		all = errors.Join(all, c.readVariable(f, getenv))
	}
	return all
}

func set(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		return boolean(text, p)
	case *int:
		return number(text, strconv.Atoi, p)
	case *int64:
		return number(text, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }, p)
	case *float64:
		return number(text, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, p)
	case interface{ UnmarshalText([]byte) error }:
		return p.UnmarshalText([]byte(text))
	default:
		return fmt.Errorf("a setting of type %s cannot be read from text", v.Type())
	}
	return nil
}

func boolean(text string, into *bool) error {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "yes", "on":
		*into = true
	case "0", "false", "no", "off":
		*into = false
	default:
		return fmt.Errorf("%q is not true or false", text)
	}
	return nil
}

func number[T int | int64 | float64](text string, parse func(string) (T, error), into *T) error {
	n, err := parse(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of 0 or more", text)
	}
	*into = n
	return nil
}
