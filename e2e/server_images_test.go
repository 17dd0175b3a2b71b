package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cove/internal/machine/image/imagetest"
	"cove/internal/testkit/testneeds"
)

// TestImagesOfAServer has callers of a server begin sessions from an image that its operator allows: by the API, the command line and E2B's own library. The sessions stay in it when its tag moves,
// over a pause, a fork and another server on the same folder.
func TestImagesOfAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	registry := imagetest.NewRegistry(t)
	contents := imagetest.Contents{
		Programs: map[string]string{"/bin/sh": "/bin/sh", "/bin/bash": "/bin/bash", "/usr/bin/cat": "/bin/cat"}, Files: map[string]string{"/app/mark": "from the image\n"},
		Config: v1.Config{Env: []string{"PATH=/usr/bin:/bin", "GREETING=hello"}},
	}
	reference := registry.Push(t, "team/tool:1", contents)
	registry.Push(t, "private/tool:1", contents)
	dir, key, allow := t.TempDir(), testKey(t), "COVE_IMAGES_ALLOW="+registry.Host+"/team/*"
	s := startServer(t, dir, key, allow, "COVE_PACKAGES=minimal")
	for wrong, code := range map[string]string{
		registry.Host + "/private/tool:1": "image_denied", "oci:" + dir: "image_denied", "a b": "image_reference", registry.Host + "/team/none:1": "image_missing",
	} {
		if r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions", map[string]any{"image": wrong}); err != nil || r.code() != code {
			t.Errorf("%s: %v, %d %s", wrong, err, r.status, r.body)
		}
	}
	type session struct {
		ID    string
		Image struct{ Reference, Digest string }
	}
	var made, fork, again session
	s.must(http.MethodPost, "/api/v1/sessions", map[string]any{"image": reference}, &made)
	removeImage(t, made.Image.Digest)
	if made.Image.Reference != reference || !strings.HasPrefix(made.Image.Digest, "sha256:") {
		t.Fatalf("it is %+v", made)
	}
	says := func(id, code, want string) {
		t.Helper()
		if all, err := s.execute(t.Context(), id, code); err != nil || printed(all) != want {
			t.Errorf("%s: it says %q, not %q: %v", code, printed(all), want, err)
		}
	}
	const mark = "print(open('/app/mark').read(), x)"
	says(made.ID, "import os; x = 42; print(os.environ['GREETING'], os.path.exists('/usr/bin/python3'))", "hello False\n")

	contents.Files["/app/mark"] = "another\n"
	registry.Push(t, "team/tool:1", contents)
	s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/fork", map[string]any{}, &fork) // which pauses it
	if fork.Image != made.Image {
		t.Errorf("the fork is %+v", fork)
	}
	says(fork.ID, "x += 1; "+mark, "from the image\n 43\n")
	says(made.ID, mark, "from the image\n 42\n")
	if r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions/"+made.ID+"/fork", map[string]any{"image": registry.Host + "/team/other"}); err != nil || r.code() != "session_image" {
		t.Errorf("a fork in another image: %v, %s", err, r.body)
	}
	batch := s.must(http.MethodPost, "/api/v1/batches", map[string]any{"items": []any{map[string]any{"code": "print(open('/app/mark').read())"}}, "make": map[string]any{"image": reference}}, nil)
	if !strings.Contains(string(batch.body), `from the image`) || !strings.Contains(string(batch.body), `"succeeded":1`) {
		t.Errorf("the batch: %s", batch.body)
	}

	s.stop().ended(t, 0)
	s = startServer(t, dir, key, allow, "COVE_PACKAGES=minimal")
	s.must(http.MethodGet, "/api/v1/sessions/"+made.ID, nil, &again)
	if again.Image != made.Image {
		t.Errorf("with another server it is %+v", again)
	}
	says(made.ID, mark, "from the image\n 42\n")
	says(fork.ID, mark, "from the image\n 43\n")

	run := func(args ...string) *command {
		c := newCommand(t, append([]string{"run", "-q", "--server", s.base, "-c", "print(open('/app/mark').read())"}, args...)...)
		c.setenv("COVE_KEY=" + key)
		return c
	}
	if got := ends(t, run("--image", reference, "--session", "lab"), 0).stdout; got != "from the image\n\n" {
		t.Errorf("the command says %q", got)
	}
	if got := ends(t, run("--image", registry.Host+"/team/other:1", "--session", "lab"), 125).stderr; !strings.Contains(got, "did not begin from this image") {
		t.Errorf("another image: %q", got)
	}
	if got := ends(t, run("--image", "oci:/srv/tool"), 125).stderr; !strings.Contains(got, "images of registries") {
		t.Errorf("a folder: %q", got)
	}

	cmd := pythonSDK(t, filepath.Join("testdata", "sdk", "e2b"))
	cmd.Args[1] = filepath.Join(filepath.Dir(cmd.Args[1]), "images.py")
	cmd.Env = append(os.Environ(), "E2B_API_URL="+s.base, "E2B_SANDBOX_URL="+s.base, "E2B_API_KEY="+key, "PYTHONDONTWRITEBYTECODE=", "IMAGE="+reference)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ok images\n") {
		t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
	}
}
