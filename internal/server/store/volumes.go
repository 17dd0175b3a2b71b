package store

import (
	"context"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

func volumeFields(v *hub.Volume) []field {
	return []field{
		{"id", textOf(&v.ID)}, {"project", textOf(&v.Project)}, {"user_id", textOf(&v.User)}, {"key_id", textOf(&v.Key)}, lookedUp(field{"name", textOf(&v.Name)}), {"created", moment{&v.Created}},
		{"size", countOf(&v.Size)}, {"home", textOf(&v.Home)},
	}
}

// AddVolume implements hub.VolumeStore.
func (s *Store) AddVolume(ctx context.Context, v hub.Volume, most int) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		var have, same int
		if err := q.QueryRowContext(ctx, "SELECT COUNT(*) FROM volumes WHERE project = $1", v.Project).Scan(&have); err != nil {
			return err
		}
		if have >= most {
			return problem.New(problem.TooManyVolumes, "the project has as many volumes as it can have").WithHint("delete some first")
		}
		if err := q.QueryRowContext(ctx, "SELECT COUNT(*) FROM volumes WHERE project = $1 AND name = $2", v.Project, s.volumeName(v.Name)).Scan(&same); err != nil {
			return err
		}
		if same > 0 {
			return problem.New(problem.VolumeExists, "the project has a volume of this name already")
		}
		return insert(ctx, q, "volumes", volumeFields(&v), "")
	})
}

// Volume implements hub.VolumeStore.
func (s *Store) Volume(ctx context.Context, project, name string) (hub.Volume, error) {
	return get(ctx, s, problem.VolumeNotFound, volumeFields, "FROM volumes WHERE project = $1 AND (id = $2 OR name = $3) ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1", project, clean(name), s.volumeName(name))
}

// volumeName is a name as it is kept.
func (s *Store) volumeName(name string) string { return s.sealer.SealFixed("name", clean(name)) }

// Volumes implements hub.VolumeStore.
func (s *Store) Volumes(ctx context.Context, project string) ([]hub.Volume, error) {
	return all(ctx, s, volumeFields, "FROM volumes WHERE project = $1 ORDER BY created, id", project)
}

// SizeVolume implements hub.VolumeStore.
func (s *Store) SizeVolume(ctx context.Context, project, id string, size int64) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "UPDATE volumes SET size = $1 WHERE id = $2 AND project = $3", size, clean(id), project)
		return err
	})
}

// DeleteVolume implements hub.VolumeStore.
func (s *Store) DeleteVolume(ctx context.Context, project, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if err := s.holdVolume(ctx, q, project, id); err != nil {
			return err
		}
		var used int
		if err := q.QueryRowContext(ctx, "SELECT COUNT(*) FROM sessions WHERE project = $1 AND gone = 0 AND volumes LIKE $2", project, `%"`+clean(id)+`"%`).Scan(&used); err != nil {
			return err
		}
		if used > 0 {
			return problem.New(problem.VolumeUsed, "sessions have the volume").WithHint("delete them first")
		}
		_, err := q.ExecContext(ctx, "DELETE FROM volumes WHERE id = $1 AND project = $2", clean(id), project)
		return err
	})
}

// holdVolume makes sure that a volume is there, and stays until the transaction has ended.
func (s *Store) holdVolume(ctx context.Context, q queryer, project, id string) error {
	_, err := one(ctx, q, volumeFields, "FROM volumes WHERE id = $1 AND project = $2"+s.dialect.forUpdate, clean(id), project)
	return found(err, problem.VolumeNotFound)
}
