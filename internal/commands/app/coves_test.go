package app_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/app"
	"cove/internal/core/problem"
	"cove/internal/testkit/testneeds"
)

// script makes a program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cove")
	testneeds.Program(t, path, "#!/bin/sh\n"+text)
	return path
}

// TestWhySalvageEnds has another cove fail in every way, and its user go away.
func TestWhySalvageEnds(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	err := app.SalvageWith(ctx, script(t, "echo begun; exec sleep 1000"), func(r io.Reader) error {
		leave()
		_, err := io.Copy(io.Discard, r)
		return errors.Join(err, errors.New("the archive of the files ends too early"))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("its user went away: %v", err)
	}
	silent := func(io.Reader) error { t.Error("nothing is used"); return nil }
	err = app.SalvageWith(t.Context(), script(t, "echo it is damaged >&2; exit 3"), silent)
	if p := problem.Of(err); p == nil || p.Code != "salvage_failed" || !strings.Contains(p.Message, "it is damaged") {
		t.Errorf("it failed: %v", err)
	}
}
