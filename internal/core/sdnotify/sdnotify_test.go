package sdnotify_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cove/internal/core/sdnotify"
)

// TestTell sends to sockets with a path and to one of the abstract namespace. It is alone, since the variable is the process's.
func TestTell(t *testing.T) {
	if err := (sdnotify.Socket{}).Tell(sdnotify.Ready, "nobody hears this"); err != nil {
		t.Errorf("without anybody to tell: %v", err)
	}
	dir := t.TempDir()
	for name, listen := range map[string]string{filepath.Join(dir, "notify"): filepath.Join(dir, "notify"), "@cove-test-" + filepath.Base(dir) + t.Name(): ""} {
		address := listen
		if address == "" {
			address = "\x00" + name[1:]
		}
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		s := sdnotify.Find()
		if left := os.Getenv("NOTIFY_SOCKET"); left != "" {
			t.Errorf("the variable is still %q, for every process that this one starts", left)
		}
		for _, test := range []struct{ state, status, want string }{
			{sdnotify.Ready, "serving on\nhttp://x", "READY=1\nSTATUS=serving on http://x"}, {"", "preparing", "STATUS=preparing"}, {sdnotify.Stopping, "", "STOPPING=1"},
		} {
			if err := s.Tell(test.state, test.status); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text := make([]byte, 1<<10)
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			n, err := c.Read(text)
			if err != nil || string(text[:n]) != test.want {
				t.Errorf("%s: got %q, want %q: %v", name, text[:n], test.want, err)
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "absent"))
	if err := sdnotify.Find().Tell(sdnotify.Ready, ""); err == nil {
		t.Error("what nobody heard is no error")
	}
}
