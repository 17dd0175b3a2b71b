package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"

	"cove/internal/core/problem"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. Every migration is a transaction: one that was killed half-way did not happen. The caller sees to it
// that no other process migrates meanwhile.
func migrate(ctx context.Context, log *slog.Logger, db *sql.DB, d goose.Dialect) error {
	p, err := newProvider(db, d)
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if err := refuseNewer(ctx, p); err != nil {
		return err
	}
	done, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	if len(done) > 0 {
		log.InfoContext(ctx, "the database's schema was brought up to date", "schema", done[len(done)-1].Source.Version)
	}
	return refuseNewer(ctx, p)
}

func newProvider(db *sql.DB, d goose.Dialect) (*goose.Provider, error) {
	folder, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(d, db, folder, goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_versions"))
}

func refuseNewer(ctx context.Context, p *goose.Provider) error {
	have, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if have > known {
		return problem.New(problem.DatabaseNewer,
			fmt.Sprintf("a newer cove made this database: its schema is %d and this cove knows up to %d", have, known)).
			WithHint("use the newer cove, or another database")
	}
	return nil
}

// schemaVersion is the schema that this cove makes.
func schemaVersion() (int64, error) {
	sources, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(sources) == 0 {
		return 0, fmt.Errorf("there are no migrations: %w", err)
	}
	return goose.NumericComponent(sources[len(sources)-1])
}
