package guest

import (
	"os"
	"testing"

	"cove/internal/wire"
)

// Code may put a symlink that leads out where a moment ago there was a file. That is refused, and no fault of the guest.
func TestSymlinkThatLeadsOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", dir+"/swap"); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err = root.Open("swap"); err == nil {
		t.Fatal("it was opened")
	}
	if r := respond(err); r.Code != wire.FaultDenied {
		t.Errorf("%v is told as %s", err, r.Code)
	}
}
