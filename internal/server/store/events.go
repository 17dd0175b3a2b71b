package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cove/internal/server/stream"
)

// rowsAtOnce is how many rows one INSERT writes.
const rowsAtOnce = 100

// AddEvents implements stream.Store. An event that is there already stays as it is, so adding may be repeated.
func (s *Store) AddEvents(ctx context.Context, events []stream.Event) error {
	if len(events) == 0 {
		return nil
	}
	return s.base.write(operation(ctx, opEvents), func(ctx context.Context, q queryer) error { return addEvents(ctx, q, events) })
}

func addEvents(ctx context.Context, q queryer, events []stream.Event) error {
	for part := range slices.Chunk(events, rowsAtOnce) {
		rows := make([][]any, len(part))
		for i := range part {
			rows[i] = targets(bind(q, eventFields(&part[i])))
		}
		if err := insertRows(ctx, q, "events ("+names(eventFields(&part[0]))+")", rows, "ON CONFLICT (stream, seq) DO NOTHING"); err != nil {
			return err
		}
	}
	return nil
}

// insertRows writes rows of equal length with one statement.
func insertRows(ctx context.Context, q queryer, into string, rows [][]any, tail string) error {
	var b strings.Builder
	b.WriteString("INSERT INTO " + into + " VALUES ")
	args := make([]any, 0, len(rows)*len(rows[0]))
	for i, row := range rows {
		for k, v := range row {
			switch {
			case k > 0:
				b.WriteString(", ")
			case i > 0:
				b.WriteString("), (")
			default:
				b.WriteString("(")
			}
			args = append(args, v)
			b.WriteString("$" + strconv.Itoa(len(args)))
		}
	}
	b.WriteString(") " + tail)
	_, err := q.ExecContext(ctx, b.String(), args...)
	return err
}

// Events implements stream.Store.
func (s *Store) Events(ctx context.Context, name, part string, after int64, limit, size int) ([]stream.Event, error) {
	var f filter
	f.add("stream = ?", clean(name))
	f.add("seq > ?", after)
	f.is("execution", clean(part))
	rows := " FROM events" + f.where() + " ORDER BY seq LIMIT " + strconv.Itoa(max(limit, 0))
	// The database adds up the lengths, so that nothing is read that does not fit.
	fitting := "SELECT max(seq) FROM (SELECT seq, sum(bytes) OVER (ORDER BY seq) - bytes AS prior FROM (SELECT seq, length(body) AS bytes" + rows + ") AS lengths) AS sums WHERE prior < " + strconv.Itoa(max(size, 1))
	f.add("seq <= (" + fitting + ")")
	return all(ctx, s, eventFields, "FROM events"+f.where()+" ORDER BY seq", f.args...)
}
