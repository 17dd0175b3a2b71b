package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/python/kernel"
)

// How much of a session's variables a prompt tells.
const (
	variablesTime  = 5 * time.Second
	variablesTold  = 40
	variablesChars = 2000
	variableChars  = 160
)

// variables tells in lines what variables the session has, the newest first: later turns need not find out anew what is there. What cannot be told is left out.
func (t *turn) variables(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, t.deadline.left(time.Millisecond, variablesTime))
	defer cancel()
	found, err := t.session.Variables(ctx)
	if err != nil {
		return nil
	}
	var lines []string
	room := variablesChars
	for n := len(found.Items) - 1; n >= 0; n-- {
		line := variableLine(found.Items[n])
		if room -= len(line) + 1; room < 0 || len(lines) == variablesTold {
			return append(lines, fmt.Sprintf("and %d more", int64(n+1)+found.More))
		}
		lines = append(lines, line)
	}
	return lines
}

func variableLine(v kernel.Variable) string {
	kind := v.Type[strings.LastIndexByte(v.Type, '.')+1:]
	if len(v.Shape) > 0 {
		sizes := make([]string, len(v.Shape))
		for n, size := range v.Shape {
			sizes[n] = fmt.Sprint(size)
		}
		kind += " " + strings.Join(sizes, "×")
	} else if v.Length != nil && *v.Length > 1 {
		kind += fmt.Sprintf(" of %d", *v.Length)
	}
	line := fmt.Sprintf("%s: %s", flatten(v.Name), flatten(kind))
	if v.Preview != "" {
		line += ", " + flatten(v.Preview)
	}
	return cutEnd(line, variableChars)
}

// flatten puts text on one line.
func flatten(text string) string { return strings.Join(strings.Fields(text), " ") }
