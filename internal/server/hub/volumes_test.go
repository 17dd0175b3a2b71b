package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/volume"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func withVolumes(dir *string) func(*hub.Options) {
	return func(o *hub.Options) {
		*dir = filepath.Join(filepath.Dir(o.Contents), "volumes")
		o.Volumes = &volume.Folders{Dir: *dir, Own: func(string) error { return nil }}
	}
}

// TestVolumes: volumes are a project's, and what sessions may have of them is looked at before anything is made.
func TestVolumes(t *testing.T) {
	t.Parallel()
	dir := ""
	l := newLife(t, withVolumes(&dir))
	ctx, who := t.Context(), auth.Local()
	v, err := l.AddVolume(ctx, who, "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a/b", `a"b`, " a", "a\n", strings.Repeat("x", 101), v.ID} {
		if _, err := l.AddVolume(ctx, who, name); !problem.Has(err, problem.VolumeInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := l.AddVolume(ctx, who, "data"); !problem.Has(err, problem.VolumeExists) {
		t.Errorf("a name twice: %v", err)
	}
	viewer := who
	viewer.Role = auth.Viewer
	if _, err := l.AddVolume(ctx, viewer, "other"); !problem.Has(err, problem.Forbidden) {
		t.Errorf("a viewer: %v", err)
	}
	for place, code := range map[string]problem.Code{
		"": problem.VolumeInvalid, "/": problem.VolumeInvalid, "data": problem.VolumeInvalid, "/a/../etc": problem.VolumeInvalid, "/etc": problem.VolumeInvalid, "/etc/data": problem.VolumeInvalid, "/usr/lib": problem.VolumeInvalid,
		"/opt": problem.VolumeInvalid, "/home": problem.VolumeInvalid, "/home/user": problem.VolumeInvalid, "/tmp": problem.VolumeInvalid, "/mnt": problem.VolumeInvalid, "/mnt/data/x": problem.VolumeInvalid, "/a\x00": problem.VolumeInvalid,
	} {
		if _, err := l.CreateSession(ctx, who, hub.NewSession{Volumes: []hub.VolumeMount{{Volume: v.ID, Path: place}}}); !problem.Has(err, code) {
			t.Errorf("at %q: %v", place, err)
		}
	}
	for _, mounts := range [][]hub.VolumeMount{
		{{Volume: v.ID, Path: "/data"}, {Volume: v.ID, Path: "/data/in", Sub: "a"}}, {{Volume: v.ID, Path: "/data"}, {Volume: v.ID, Path: "/other"}}, {{Volume: v.ID, Path: "/data", Sub: "../a"}},
		{{Volume: v.ID, Path: "/data", Sub: "/a"}}, {{Volume: v.ID, Path: "/data", Sub: "a//b"}}, make([]hub.VolumeMount, 11),
	} {
		if _, err := l.CreateSession(ctx, who, hub.NewSession{Volumes: mounts}); !problem.Has(err, problem.VolumeInvalid) {
			t.Errorf("%v: %v", mounts, err)
		}
	}
	if _, err := l.CreateSession(ctx, who, hub.NewSession{Volumes: []hub.VolumeMount{{Volume: "other", Path: "/data"}}}); !problem.Has(err, problem.VolumeNotFound) {
		t.Errorf("a volume that is not there: %v", err)
	}
	s, err := l.CreateSession(ctx, who, hub.NewSession{Volumes: []hub.VolumeMount{{Volume: "data", Path: "/data"}, {Volume: "data", Path: "/home/user/a", Sub: "a/b"}}})
	if err != nil || fmt.Sprint(s.Volumes) != fmt.Sprintf("[{%[1]s /data } {%[1]s /home/user/a a/b}]", v.ID) {
		t.Fatalf("it has %v, %v", s.Volumes, err)
	}
	if _, err := os.Stat(filepath.Join(dir, who.Project, v.ID, "a", "b")); err != nil {
		t.Error(err)
	}
	kid, err := l.ForkSession(ctx, who, s.ID, hub.NewSession{})
	if err != nil || len(kid.Volumes) != 2 {
		t.Errorf("the fork has %v, %v", kid.Volumes, err)
	}
	if _, err := l.ForkSession(ctx, who, s.ID, hub.NewSession{Volumes: []hub.VolumeMount{{Volume: v.ID, Path: "/b"}}}); !problem.Has(err, problem.VolumeInvalid) {
		t.Errorf("a fork with others: %v", err)
	}
	for _, id := range []string{s.ID, kid.ID} {
		if err := l.DeleteVolume(ctx, who, v.ID); !problem.Has(err, problem.VolumeUsed) {
			t.Errorf("a volume that a session has is deleted: %v", err)
		}
		if err := l.DeleteSession(ctx, who, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.DeleteVolume(ctx, who, v.ID); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if _, err := os.Stat(filepath.Join(dir, who.Project, v.ID)); os.IsNotExist(err) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the folder of a deleted volume stays")
}

// TestVolumesOnTheDisk: a server that starts removes what has no record, and one without volumes says why.
func TestVolumesOnTheDisk(t *testing.T) {
	t.Parallel()
	dir, folder := "", t.TempDir()
	db := openStore(t, folder)
	l := lifeIn(t, folder, db, withVolumes(&dir))
	v, err := l.AddVolume(t.Context(), auth.Local(), "data")
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, v.Project, "vol_left")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what has no record stays: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, v.Project, v.ID)); err != nil {
		t.Error(err)
	}
	without := newLife(t, func(o *hub.Options) { o.NoVolumes = "it is an ordinary user's" })
	if _, err := without.AddVolume(t.Context(), auth.Local(), "data"); !problem.Has(err, problem.VolumesAbsent) || !strings.Contains(err.Error(), "ordinary") {
		t.Errorf("without volumes: %v", err)
	}
}
