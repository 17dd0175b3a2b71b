package store

import (
	"context"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

func uploadFields(u *hub.Upload) []field {
	return []field{
		{"id", textOf(&u.ID)}, {"project", textOf(&u.Project)}, {"user_id", textOf(&u.User)}, {"key_id", textOf(&u.Key)}, content(field{"name", textOf(&u.Name)}),
		{"size", countOf(&u.Size)}, {"received", countOf(&u.Received)}, {"file", textOf(&u.File)}, {"created", moment{&u.Created}},
		{"expires", moment{&u.Expires}}, {"home", textOf(&u.Home)},
	}
}

// AddUpload implements hub.UploadStore. Requests that PostgreSQL takes at the same moment do not see each other, and may be a few too many.
func (s *Store) AddUpload(ctx context.Context, u hub.Upload, most hub.UploadBounds) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		var server, project, key int
		err := q.QueryRowContext(ctx, `SELECT COUNT(*), COUNT(CASE WHEN project = $1 THEN 1 END), COUNT(CASE WHEN project = $1 AND user_id = $2 AND key_id = $3 THEN 1 END)
			FROM uploads WHERE file = '' AND expires > $4`, u.Project, clean(u.User), clean(u.Key), micros(u.Created)).Scan(&server, &project, &key)
		if err != nil {
			return err
		}
		full := func(whose string, n int) error {
			return problem.New(problem.TooManyUploads, whose+" has "+strconv.Itoa(n)+" unfinished uploads, and can have no more").
				WithHint("finish or drop some of them, or send the file whole")
		}
		switch {
		case key >= most.Key:
			return full("the key", key)
		case project >= most.Project:
			return full("the project", project)
		case server >= most.Server:
			return full("the server", server)
		}
		return insert(ctx, q, "uploads", uploadFields(&u), "")
	})
}

// Upload implements hub.UploadStore.
func (s *Store) Upload(ctx context.Context, project, id string) (hub.Upload, error) {
	return get(ctx, s, problem.UploadNotFound, uploadFields, "FROM uploads WHERE id = $1 AND project = $2", clean(id), project)
}

// UpdateUpload implements hub.UploadStore.
func (s *Store) UpdateUpload(ctx context.Context, project, id string, change func(*hub.Upload) error) (hub.Upload, error) {
	return modify(ctx, s, uploadRecord(), oneUpload(project, id), change, nil)
}

// FinishUpload implements hub.UploadStore.
func (s *Store) FinishUpload(ctx context.Context, f hub.File, id string, expires time.Time) (hub.Upload, error) {
	become := func(u *hub.Upload) error {
		if u.File != "" {
			return problem.New(problem.UploadInUse, "the upload has become a file meanwhile").WithHint("ask for the upload")
		}
		u.File, u.Expires = f.ID, expires
		return nil
	}
	return modify(ctx, s, uploadRecord(), oneUpload(f.Project, id), become, func(ctx context.Context, q queryer, _ *hub.Upload) error {
		return insert(ctx, q, "files", fileFields(&f), "")
	})
}

func uploadRecord() record[hub.Upload] {
	return record[hub.Upload]{problem.UploadNotFound, "uploads", uploadFields}
}

func oneUpload(project, id string) filter {
	var w filter
	w.add("id = ?", clean(id))
	w.add("project = ?", project)
	return w
}

// DeleteUpload implements hub.UploadStore.
func (s *Store) DeleteUpload(ctx context.Context, project, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, "DELETE FROM uploads WHERE id = $1 AND project = $2", clean(id), project)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); n > 0 || err != nil {
			return err
		}
		return missing(problem.UploadNotFound)
	})
}

// ExpiredUploads implements hub.UploadStore.
func (s *Store) ExpiredUploads(ctx context.Context, by time.Time, limit int) ([]hub.Upload, error) {
	return all(ctx, s, uploadFields, "FROM uploads WHERE expires <= $1 ORDER BY expires, id LIMIT "+strconv.Itoa(max(limit, 0)), micros(by))
}

// OverUploads implements hub.UploadStore.
func (s *Store) OverUploads(ctx context.Context, ids []string) ([]string, error) {
	return s.absent(ctx, ids, "uploads", "id", "file = ''")
}
