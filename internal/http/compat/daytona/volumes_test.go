package daytona

import (
	"fmt"
	"net/http"
	"testing"
)

// TestVolumes: volumes are found by id and by name, and a sandbox shows those that it has.
func TestVolumes(t *testing.T) {
	t.Parallel()
	x := newWorld(t, "")
	made := x.must("POST", "/volumes", `{"name":"data"}`)
	id := made["id"].(string)
	if made["state"] != "ready" || made["name"] != "data" {
		t.Errorf("it is %v", made)
	}
	for _, path := range []string{"/volumes/" + id, "/volumes/by-name/data", "/volumes/data"} {
		if got := x.must("GET", path, ""); got["id"] != id {
			t.Errorf("%s is %v", path, got)
		}
	}
	box := x.must("POST", "/sandbox", `{"volumes":[{"volumeId":"`+id+`","mountPath":"/data","subpath":"a/b"}]}`)
	if got := fmt.Sprint(box["volumes"]); got != "[map[mountPath:/data subpath:a/b volumeId:"+id+"]]" {
		t.Errorf("it has %s", got)
	}
	x.must("POST", "/sandbox/"+box["id"].(string)+"/snapshot", `{"name":"kept"}`)
	for _, body := range []string{`{"snapshot":"kept","volumes":[{"volumeId":"data","mountPath":"/data"}]}`, `{"buildInfo":{"dockerfileContent":"FROM python:3\nRUN x"},"volumes":[{"volumeId":"data","mountPath":"/data"}]}`} {
		if code, _, _ := x.ask("POST", "/sandbox", body); code != http.StatusNotImplemented {
			t.Errorf("%s: %d", body, code)
		}
	}
	x.ask("DELETE", "/volumes/"+id, "")
	if code, out, _ := x.ask("GET", "/volumes/by-name/data", ""); code != http.StatusNotFound {
		t.Errorf("a volume that is deleted: %d %v", code, out)
	}
}
