package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/hub"
	"cove/internal/server/store"
)

func TestUploads(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		key2 := hub.UploadBounds{Key: 2, Project: 100, Server: 100}
		u := hub.Upload{ID: "upl_1", Project: project, User: "usr_a", Key: "key_a", Name: "数.csv", Size: 1 << 40, Home: "hom_1", Created: at(0), Expires: at(60)}
		must(t, s.AddUpload(ctx, u, key2))
		got, err := s.Upload(ctx, project, "upl_1")
		must(t, err)
		if diff := cmp.Diff(u, got); diff != "" {
			t.Errorf("an upload differs: %s", diff)
		}
		second := u
		second.ID, second.Size = "upl_2", 10
		must(t, s.AddUpload(ctx, second, key2))
		third := second
		third.ID = "upl_3"
		wantCode(t, s.AddUpload(ctx, third, key2), "too_many_uploads")
		other := third
		other.Key, other.ID = "key_b", "upl_4"
		must(t, s.AddUpload(ctx, other, key2))
		fifth := other
		fifth.ID = "upl_5"
		wantCode(t, s.AddUpload(ctx, fifth, hub.UploadBounds{Key: 9, Project: 3, Server: 9}), "too_many_uploads")
		fifth.Project = "prj_b"
		wantCode(t, s.AddUpload(ctx, fifth, hub.UploadBounds{Key: 9, Project: 9, Server: 3}), "too_many_uploads")
		third.Created = at(60) // the first two have expired
		must(t, s.AddUpload(ctx, third, key2))

		_, err = s.Upload(ctx, "prj_x", "upl_1")
		wantCode(t, err, "upload_not_found")
		_, err = s.UpdateUpload(ctx, "prj_x", "upl_1", func(*hub.Upload) error { return nil })
		wantCode(t, err, "upload_not_found")
		wantCode(t, s.DeleteUpload(ctx, "prj_x", "upl_1"), "upload_not_found")
		got, err = s.UpdateUpload(ctx, project, "upl_1", func(u *hub.Upload) error { u.Received, u.Expires = 7, at(90); return nil })
		must(t, err)
		u.Received, u.Expires = 7, at(90)
		if diff := cmp.Diff(u, got); diff != "" {
			t.Errorf("a changed upload differs: %s", diff)
		}
		no := errors.New("no")
		if _, err = s.UpdateUpload(ctx, project, "upl_1", func(u *hub.Upload) error { u.Received = 9; return no }); !errors.Is(err, no) {
			t.Error(err)
		}

		held, err := s.HeldDisk(ctx, project)
		must(t, err)
		file := hub.File{ID: "fil_1", Project: project, Name: "数.csv", Size: 1 << 40, SHA256: "aa", Created: at(1)}
		got, err = s.FinishUpload(ctx, file, "upl_1", at(99))
		must(t, err)
		if got.File != "fil_1" || !got.Expires.Equal(at(99)) {
			t.Errorf("a finished upload is %+v", got)
		}
		if now, err := s.HeldDisk(ctx, project); err != nil || now != held || held != 1<<40+3*10 {
			t.Errorf("held were %d bytes and are %d, %v", held, now, err)
		}
		kept, err := s.File(ctx, project, "fil_1")
		must(t, err)
		if diff := cmp.Diff(file, kept); diff != "" {
			t.Errorf("its file differs: %s", diff)
		}
		file.ID = "fil_2"
		_, err = s.FinishUpload(ctx, file, "upl_1", at(99))
		wantCode(t, err, "upload_in_use")
		_, err = s.FinishUpload(ctx, file, "upl_9", at(99))
		wantCode(t, err, "upload_not_found")
		_, err = s.File(ctx, project, "fil_2")
		wantCode(t, err, "file_not_found")

		over, err := s.OverUploads(ctx, []string{"upl_1", "upl_2", "upl_9"})
		must(t, err)
		if diff := cmp.Diff([]string{"upl_1", "upl_9"}, over); diff != "" {
			t.Errorf("over are %s", diff)
		}
		if over, err = s.OverUploads(ctx, nil); err != nil || len(over) != 0 {
			t.Errorf("of none over are %v, %v", over, err)
		}
		expired, err := s.ExpiredUploads(ctx, at(98), 2)
		must(t, err)
		if len(expired) != 2 || expired[0].ID != "upl_2" {
			t.Errorf("expired are %+v", expired)
		}
		must(t, s.DeleteUpload(ctx, project, "upl_2"))
		wantCode(t, s.DeleteUpload(ctx, project, "upl_2"), "upload_not_found")
	})
}
