package builder_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cove/internal/server/builder"
)

// TestDockerfile reads what builders of images emit, with lines that go on, comments, quotes and arguments.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	const text = "# syntax=docker/dockerfile:1\nARG VERSION=3.12\nFROM python:${VERSION}-slim AS base\n\n" +
		"ARG TOKEN\nARG EXTRA=a\\ b\nENV A=1 B=\"two words $A\" C='$A' D=/x:$PATH\nENV OLD all of it\n" +
		"RUN python -m pip install \\\n    # a comment between\n    six \\\n\n    attrs\n" +
		"RUN [\"echo\", \"it's\", \"$HOME\"]\nCOPY --chown=user:user --chmod=0755 [\"a b\", \"/app/\"]\nCOPY x y* dir/\n" +
		"WORKDIR /app\nUSER root\nEXPOSE 80\nLABEL a=b\nENTRYPOINT [\"python\", \"-m\"]\nCMD [\"http.server\", \"80 81\"]\n"
	got, err := builder.ParseDockerfile(text, map[string]string{"TOKEN": "s$cret"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := builder.Recipe{
		Image: "python:3.12-slim", Line: 3, Start: "python -m http.server '80 81'",
		Steps: []builder.Step{
			{Kind: builder.Arg, Line: 5, Pairs: []string{"TOKEN", `s\$cret`}},
			{Kind: builder.Arg, Line: 6, Pairs: []string{"EXTRA", "a b"}},
			{Kind: builder.Env, Line: 7, Pairs: []string{"A", "1", "B", "two words $A", "C", `\$A`, "D", "/x:$PATH"}},
			{Kind: builder.Env, Line: 8, Pairs: []string{"OLD", "all of it"}},
			{Kind: builder.Run, Line: 9, Command: "python -m pip install     six     attrs"},
			{Kind: builder.Run, Line: 14, Command: `echo 'it'\''s' '$HOME'`},
			{Kind: builder.Copy, Line: 15, Sources: []string{"a b"}, To: "/app/", Owner: "user:user", Mode: "0755"},
			{Kind: builder.Copy, Line: 16, Sources: []string{"x", "y*"}, To: "dir/"},
			{Kind: builder.Workdir, Line: 17, Dir: "/app"},
			{Kind: builder.User, Line: 18, User: "root"},
		},
	}
	for i := range want.Steps {
		if i >= len(got.Steps) || !reflect.DeepEqual(got.Steps[i], want.Steps[i]) {
			t.Fatalf("step %d is not %+v\n%+v", i+1, want.Steps[i], got.Steps)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestDockerfileRefuses names the line of what a session cannot be.
func TestDockerfileRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		line int
		word string
	}{
		"":                                                {0, "no FROM"},
		"RUN x":                                           {1, "first instruction is FROM"},
		"FROM alpine:3":                                   {1, "alpine:3"},
		"FROM ghcr.io/somebody/python":                    {1, "ghcr.io/somebody/python"},
		"FROM scratch":                                    {1, "from nothing"},
		"FROM --platform=x python":                        {1, "--platform=x"},
		"FROM python\nRUN a\nFROM python":                 {3, "several stages"},
		"FROM python\nCOPY --from=b /a /b":                {2, "--from"},
		"FROM python\nCOPY ../a /b":                       {2, "out of the context"},
		"FROM python\nCOPY a/**/b /b":                     {2, "**"},
		"FROM python\nCOPY a":                             {2, "where they go"},
		"FROM python\nADD https://example.com/a /b":       {2, "RUN curl"},
		"FROM python\nADD a.tar.gz /b":                    {2, "RUN tar"},
		"FROM python\nRUN --mount=type=cache a":           {2, "--mount=type=cache"},
		"FROM python\nRUN cat <<EOF\nx\nEOF":              {2, "<<"},
		"FROM python\n\nHEALTHCHECK CMD x":                {3, "HEALTHCHECK"},
		"FROM python\nRUN a \\":                           {2, "continued"},
		"FROM python\nENV 1=2":                            {2, "name of a variable"},
		"FROM python\nENV A=\"x":                          {2, "quote"},
		"FROM python\nCOPY --chmod=rwx a b":               {2, "octal"},
		"FROM python\nRUN \x00":                           {2, "no text"},
		"FROM python\n" + strings.Repeat("USER u\n", 201): {0, "200 steps"},
	} {
		_, err := builder.ParseDockerfile(text, nil, nil)
		f, ok := errors.AsType[*builder.Fault](err)
		if !ok || f.Line != want.line || !strings.Contains(f.Error(), want.word) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// TestStates has the same states for the same beginnings alone, and none from a step on that is to be done anew.
func TestStates(t *testing.T) {
	t.Parallel()
	run := func(command string) builder.Step { return builder.Step{Kind: builder.Run, Command: command} }
	one := builder.Recipe{Image: "python", Steps: []builder.Step{run("a"), run("b")}, Start: "s"}
	two := builder.Recipe{Image: "python", Steps: []builder.Step{run("a"), run("c")}, Start: "s"}
	a, b := one.States("x"), two.States("x")
	if len(a) != 4 || a[0] != b[0] || a[1] != b[1] || a[2] == b[2] || a[3] == b[3] || a[2] == a[3] || a[0] == one.States("y")[0] {
		t.Errorf("%q\n%q", a, b)
	}
	forced := builder.Recipe{Image: "python", Steps: slices.Clone(one.Steps), Start: "s"}
	forced.Steps[1].Force, forced.Steps[1].Line = true, 7
	if got := forced.States("x"); got[0] != a[0] || got[1] != a[1] || got[2] != "" || got[3] != "" {
		t.Errorf("forced: %q", got)
	}
	if forced.Final("x") != a[3] || one.Final("x") != a[3] {
		t.Error("what is made depends on how")
	}
	one.Force = true
	if got := one.States("x"); got[1] != "" || got[3] != "" {
		t.Errorf("all forced: %q", got)
	}
}
