package store_test

import (
	"testing"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// TestVolumes: names are a project's own, and what sessions have is not deleted.
func TestVolumes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		one := hub.Volume{ID: "vol_1", Project: "prj_1", User: "usr_1", Key: "key_1", Name: "data", Created: at(1), Home: "hom_1"}
		must(t, s.AddVolume(ctx, one, 2))
		same := one
		same.ID = "vol_2"
		wantCode(t, s.AddVolume(ctx, same, 2), "volume_exists")
		same.Project = "prj_2"
		must(t, s.AddVolume(ctx, same, 2))
		other := hub.Volume{ID: "vol_3", Project: "prj_1", Name: "vol_1", Created: at(2)}
		must(t, s.AddVolume(ctx, other, 2))
		wantCode(t, s.AddVolume(ctx, hub.Volume{ID: "vol_4", Project: "prj_1", Name: "more"}, 2), "too_many_volumes")
		must(t, s.SizeVolume(ctx, "prj_1", "vol_1", 1000))
		one.Size = 1000
		for _, name := range []string{"vol_1", "data"} { // an id goes before a name
			if got, err := s.Volume(ctx, "prj_1", name); err != nil || got != one {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
		if all, err := s.Volumes(ctx, "prj_1"); err != nil || len(all) != 2 || all[0] != one {
			t.Errorf("there are %v, %v", all, err)
		}
		if held, err := s.HeldDisk(ctx, "prj_1"); err != nil || held != 1000 {
			t.Errorf("%d bytes are held, %v", held, err)
		}
		_, err := s.Volume(ctx, "prj_2", "vol_1")
		wantCode(t, err, "volume_not_found")

		mounts := []hub.VolumeMount{{Volume: "vol_1", Path: "/data", Sub: "a"}}
		must(t, s.AddSession(ctx, hub.Session{ID: "ses_1", Project: "prj_1", State: hub.SessionActive, Created: at(3), Volumes: mounts}))
		if got, err := s.Session(ctx, "prj_1", "ses_1"); err != nil || len(got.Volumes) != 1 || got.Volumes[0] != mounts[0] {
			t.Errorf("the session has %v, %v", got.Volumes, err)
		}
		wantCode(t, s.DeleteVolume(ctx, "prj_1", "vol_1"), "volume_used")
		wantCode(t, s.DeleteVolume(ctx, "prj_2", "vol_1"), "volume_not_found")
		_, err = s.UpdateSession(ctx, "prj_1", "ses_1", func(row *hub.Session) error {
			row.State = hub.SessionDeleted
			return nil
		})
		must(t, err)
		must(t, s.DeleteVolume(ctx, "prj_1", "vol_1"))
		wantCode(t, s.DeleteVolume(ctx, "prj_1", "vol_1"), "volume_not_found")
		wantCode(t, s.AddSession(ctx, hub.Session{ID: "ses_2", Project: "prj_1", Created: at(3), Volumes: mounts}), "volume_not_found")
	})
}
