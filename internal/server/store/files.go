package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

// AddFile implements hub.FileStore.
func (s *Store) AddFile(ctx context.Context, f hub.File) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error { return insert(ctx, q, "files", fileFields(&f), "") })
}

// File implements hub.FileStore.
func (s *Store) File(ctx context.Context, project, id string) (hub.File, error) {
	return get(ctx, s, problem.FileNotFound, fileFields, "FROM files WHERE id = $1 AND project = $2", clean(id), project)
}

// Files implements hub.FileStore.
func (s *Store) Files(ctx context.Context, project, purpose string, p hub.Page) (hub.Listing[hub.File], error) {
	var w filter
	w.add("project = ?", project)
	w.is("purpose", clean(purpose))
	return list(ctx, s, order[hub.File]{
		table: "files", fields: fileFields, by: "created",
		at: func(f *hub.File) (time.Time, string) { return f.Created, f.ID },
	}, w, p)
}

// DeleteFile implements hub.FileStore. It returns what the file was.
func (s *Store) DeleteFile(ctx context.Context, project, id string) (hub.File, error) {
	var f hub.File
	err := s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
		if f, err = one(ctx, q, fileFields, "FROM files WHERE id = $1 AND project = $2"+s.dialect.forUpdate, clean(id), project); err != nil {
			return found(err, problem.FileNotFound)
		}
		_, err = q.ExecContext(ctx, "DELETE FROM files WHERE id = $1", f.ID)
		return err
	})
	return f, err
}

// UnusedContent implements hub.FileStore.
func (s *Store) UnusedContent(ctx context.Context, hashes []string) ([]string, error) {
	return s.absent(ctx, hashes, "files", "sha256", "")
}

// absent returns those of some keys that no row of a table has in a column, of the rows that meet a condition ("" for all).
func (s *Store) absent(ctx context.Context, keys []string, table, column, condition string) ([]string, error) {
	there := map[string]bool{}
	for part := range slices.Chunk(keys, rowsAtOnce) {
		var f filter
		f.among(column, part)
		if condition != "" {
			f.add(condition)
		}
		err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
			have, err := oneColumn(ctx, q, "SELECT DISTINCT "+column+" FROM "+table+f.where(), f.args...)
			for _, key := range have {
				there[key] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return there[key] }), nil
}

// Contents returns the hashes of all contents that files have, each once, in order: what a backup needs beside the records.
func (s *Store) Contents(ctx context.Context) ([]string, error) {
	var out []string
	err := s.base.read(ctx, func(ctx context.Context, q queryer) (err error) {
		out, err = oneColumn(ctx, q, "SELECT DISTINCT sha256 FROM files ORDER BY sha256")
		return err
	})
	return out, err
}

// oneColumn reads the only column of a query.
func oneColumn(ctx context.Context, q queryer, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// ExpiredFiles implements hub.FileStore.
func (s *Store) ExpiredFiles(ctx context.Context, by time.Time, limit int) ([]hub.File, error) {
	return all(ctx, s, fileFields, "FROM files WHERE expires > 0 AND expires <= $1 ORDER BY expires, id LIMIT "+strconv.Itoa(max(limit, 0)), micros(by))
}
