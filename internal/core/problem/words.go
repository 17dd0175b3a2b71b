package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// InWords is the text of an error, in which what Go's packages say of files, networks, numbers and JSON is in words that need no knowledge of these packages. before is
// what is said before it: what is named there is not named again.
func InWords(err error, before string) string {
	text := err.Error()
	var reword func(err error)
	reword = func(err error) {
		if words := plainly(err, before); words != "" {
			text = strings.Replace(text, err.Error(), words, 1)
			return
		}
		switch e := err.(type) { //nolint:errorlint // each error of the tree is looked at by itself
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				reword(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				reword(inner)
			}
		}
	}
	reword(err)
	return text
}

// plainly says what one error of Go's packages says, or "" of others.
func plainly(err error, before string) string {
	switch e := err.(type) { //nolint:errorlint // as in InWords
	case *fs.PathError:
		return about(e.Path, e.Err, before)
	case *os.LinkError:
		return about(e.New, e.Err, before)
	case *os.SyscallError:
		return InWords(e.Err, before)
	case *url.Error:
		return about(e.URL, e.Err, before)
	case *net.DNSError:
		return ofName(e)
	case *net.OpError:
		if e.Addr == nil {
			return InWords(e.Err, before)
		}
		return about(e.Addr.String(), e.Err, before)
	case *strconv.NumError:
		if errors.Is(e, strconv.ErrRange) {
			return fmt.Sprintf("%.100q is too large a number", e.Num)
		}
		return fmt.Sprintf("%.100q is not a number", e.Num)
	case *json.SyntaxError:
		return fmt.Sprintf("it is not JSON (at byte %d: %s)", e.Offset, e.Error())
	case *json.UnmarshalTypeError:
		if e.Field == "" {
			return fmt.Sprintf("a JSON value of another kind was expected, not a %s", e.Value)
		}
		return fmt.Sprintf("its field %q may not be a %s", e.Field, e.Value)
	}
	return ""
}

// ofName says why the name of a host led nowhere.
func ofName(e *net.DNSError) string {
	if e.IsNotFound {
		return "there is no host " + e.Name
	}
	return "the name of the host " + e.Name + " cannot be looked up now"
}

// about is an error with the name of what it is about, unless that was just said.
func about(name string, err error, before string) string {
	words := InWords(err, before+name)
	if name == "" || strings.Contains(before, name) {
		return words
	}
	return name + ": " + words
}
