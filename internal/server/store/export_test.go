package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"cove/internal/server/hub"
)

// Writing are the connections of which a store that has written to SQLite holds the only one.
func (s *Store) Writing() *sql.DB { return s.base.(timed).base.(*file).writing }

func (s *Store) reading() *sql.DB { return s.base.(timed).base.(*file).reading }

// Pages is how many pages the file has.
func (s *Store) Pages(ctx context.Context) (n int, err error) {
	return n, s.reading().QueryRowContext(ctx, "PRAGMA page_count").Scan(&n)
}

// Write has the connection that writes do something.
func (s *Store) Write(ctx context.Context, text string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, text)
		return err
	})
}

// Hurry has a store on PostgreSQL give its operations so much time.
func Hurry(s *Store, patience time.Duration) { s.base.(timed).base.(*server).patience = patience }

// HurrySearch has searches take so long at most.
func HurrySearch(s *Store, most time.Duration) { s.searching = most }

// PlanOfSessions returns how SQLite answers a list of sessions.
func (s *Store) PlanOfSessions(ctx context.Context, project string, f hub.SessionFilter, p hub.Page) (string, error) {
	w := sessionFilter(nil, project, f)
	from, err := pageQuery("sessions", "created", &w, p, 20)
	if err != nil {
		return "", err
	}
	return s.plan(ctx, "SELECT "+names(sessionFields(new(hub.Session)))+" "+from, w.args)
}

// PlanOfSearch returns how SQLite answers a search.
func (s *Store) PlanOfSearch(ctx context.Context, project, query string, p hub.Page) (string, error) {
	from, args, err := searchQuery(project, ask(query), p, 20)
	if err != nil {
		return "", err
	}
	return s.plan(ctx, "SELECT id "+from, args)
}

func (s *Store) plan(ctx context.Context, query string, args []any) (string, error) {
	rows, err := s.reading().QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return "", err
		}
		out = append(out, detail)
	}
	return strings.Join(out, "\n"), rows.Err()
}

// Index returns the words that a text is found by.
func Index(text string) []string { return index(text) }

// Snippet returns what a search for query shows of a text.
func Snippet(query, text string) string { q := ask(query); return q.snippet(text) }

// AnswerSnippet returns what a search for query shows of an answer.
func AnswerSnippet(query, text string) string { q := ask(query); return q.answerSnippet(text) }

// PretendNewer notes a migration that this cove does not know.
func PretendNewer(ctx context.Context, s *Store) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "INSERT INTO schema_versions (version_id, is_applied) VALUES ($1, $2)", 9_999, true)
		return err
	})
}

// ColumnsOf returns the columns that a table has in SQLite.
func ColumnsOf(ctx context.Context, s *Store, table string) ([]string, error) {
	return oneColumn(ctx, s.reading(), "SELECT name FROM pragma_table_info($1) ORDER BY name", table)
}

// TableNames returns the tables that SQLite has.
func TableNames(ctx context.Context, s *Store) ([]string, error) {
	return oneColumn(ctx, s.reading(), "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_versions' ORDER BY name")
}

// BackedUp returns the columns of every table that a backup has.
func BackedUp() map[string][]string {
	out := map[string][]string{}
	for _, t := range tables() {
		out[t.Name], _ = t.columns()
	}
	return out
}

// Promises counts those that are kept, passed or not.
func Promises(ctx context.Context, s *Store) (n int, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, "SELECT COUNT(*) FROM promises").Scan(&n)
	})
	return n, err
}
