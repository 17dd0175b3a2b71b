package bodybudget

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// WhyNotJSON says in words of JSON why a text was not decoded; package encoding/json speaks of Go's types.
func WhyNotJSON(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "it"
		if wrong.Field != "" {
			what = wrong.Field
		}
		given, number, _ := strings.Cut(wrong.Value, " ")
		if number != "" {
			given = number
		}
		return fmt.Sprintf("%s has to be %s, not %s", what, kindOf(wrong.Type), withArticle(given))
	}
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%s, at byte %d", strings.TrimPrefix(broken.Error(), "json: "), broken.Offset)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// kindOf names what JSON has for a type of Go's.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	}
	return "an object"
}

func withArticle(given string) string {
	switch given {
	case "string", "number":
		return "a " + given
	case "array", "object":
		return "an " + given
	case "bool":
		return "true or false"
	}
	return given // the number itself
}
