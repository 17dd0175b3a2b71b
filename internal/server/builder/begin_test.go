package builder_test

import (
	"errors"
	"strings"
	"testing"

	"cove/internal/server/builder"
)

// TestBegin has an image itself begun from where the operator has named it, and else cove's own session stand for those that it stands for.
func TestBegin(t *testing.T) {
	t.Parallel()
	named := map[string]bool{"python:3.12": true, "ghcr.io/team/tool:1": true, "node:22": false}
	may := func(image string) (bool, error) {
		is, known := named[image]
		if !known && image != "debian:13" {
			return false, errors.New("not this one")
		}
		return is, nil
	}
	for image, want := range map[string]string{
		"": "own", "python:3.12": "itself", "ghcr.io/team/tool:1": "itself", "node:22": "itself", // allowed as all are
		"debian:13": "own", "python:3.11": "own", "e2bdev/base": "own", "ghcr.io/team/other": "none", "python:2.7": "none",
	} {
		r := builder.Recipe{Image: image}
		err := r.Begin(may)
		got := map[bool]string{true: "itself", false: "own"}[r.Fetched]
		if err != nil {
			if got = "none"; !strings.Contains(err.Error(), "images.allow") {
				t.Errorf("%s: %v", image, err)
			}
		}
		if got != want {
			t.Errorf("%q begins from %s, not %s: %v", image, got, want, err)
		}
		if err == nil && r.Check() != nil {
			t.Errorf("%q: %v", image, r.Check())
		}
	}
	own, itself := builder.Recipe{Image: "python:3.12"}, builder.Recipe{Image: "python:3.12", Fetched: true}
	if own.Final("x") == itself.Final("x") {
		t.Error("what was made from cove's own session stands for what is made from the image")
	}
	if err := (&builder.Recipe{Image: "node:22"}).Begin(nil); err == nil {
		t.Error("an image is begun from where none may be")
	}
	text := "FROM ghcr.io/team/tool:1\nRUN make it\n"
	if r, err := builder.ParseDockerfile(text, nil, may); err != nil || !r.Fetched {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := builder.ParseDockerfile(text, nil, nil); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}
