package store

import (
	"context"
	"strconv"
	"time"

	"cove/internal/server/hub"
)

// additionLife is how long it is remembered that an addition was made, at least.
const additionLife = 48 * time.Hour

// AddUsage implements hub.UsageStore. The last addition of each who adds is remembered like an idempotency key, beside the counters that it changed.
func (s *Store) AddUsage(ctx context.Context, project, key string, a hub.Addition, u hub.Usage) error {
	row := func(key string) []field {
		return append([]field{{"project", textOf(&project)}, {"key_id", textOf(&key)}}, usageFields(&u)...)
	}
	// Counters of tokens that cannot be (model.MostTokens) were a model's lies, and begin again. So does the cost of a day on which the operator changes the
	// currency: amounts of two are no sum.
	const add = `ON CONFLICT (project, key_id, day) DO UPDATE SET
		executions = usage_days.executions + excluded.executions, wall_seconds = usage_days.wall_seconds + excluded.wall_seconds,
		cpu_seconds = usage_days.cpu_seconds + excluded.cpu_seconds, turns = usage_days.turns + excluded.turns,
		input_tokens = CASE WHEN usage_days.input_tokens BETWEEN 0 AND 1125899906842624 THEN usage_days.input_tokens ELSE 0 END + excluded.input_tokens,
		output_tokens = CASE WHEN usage_days.output_tokens BETWEEN 0 AND 1125899906842624 THEN usage_days.output_tokens ELSE 0 END + excluded.output_tokens,
		upload_bytes = usage_days.upload_bytes + excluded.upload_bytes,
		cost = CASE WHEN excluded.currency IN ('', usage_days.currency) AND usage_days.cost < 1125899906842624 THEN usage_days.cost ELSE 0 END + excluded.cost,
		currency = CASE WHEN excluded.currency = '' THEN usage_days.currency ELSE excluded.currency END`
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if made, err := added(ctx, q, project, key, u.Day, a); made || err != nil {
			return err
		}
		// The key's row first and always: two that lock both rows do so in one order.
		if key != "" {
			if err := insert(ctx, q, "usage_days", row(key), add); err != nil {
				return err
			}
		}
		return insert(ctx, q, "usage_days", row(""), add)
	})
}

// added says whether an addition was made, and notes that it is made now.
func added(ctx context.Context, q queryer, project, key, day string, a hub.Addition) (bool, error) {
	if a.By == "" {
		return false, nil
	}
	done, err := q.ExecContext(ctx, `INSERT INTO promises (project, word, thing, until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (project, word) DO UPDATE SET thing = EXCLUDED.thing, until = EXCLUDED.until WHERE promises.thing <> EXCLUDED.thing`,
		clean(project), clean("usage "+a.By+" "+day+" "+key), strconv.FormatInt(a.Number, 10), micros(time.Now().Add(additionLife)))
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == 0, err
}

// Usage implements hub.UsageStore. Days without use are left out.
func (s *Store) Usage(ctx context.Context, project, key, first, last string) ([]hub.Usage, error) {
	return all(ctx, s, usageFields, "FROM usage_days WHERE project = $1 AND key_id = $2 AND day >= $3 AND day <= $4 ORDER BY day",
		project, clean(key), clean(first), clean(last))
}

// UsageOfAll implements hub.UsageStore.
func (s *Store) UsageOfAll(ctx context.Context, first, last string) ([]hub.Usage, error) {
	return all(ctx, s, usageFields, summed("day")+" ORDER BY day", clean(first), clean(last))
}

// UsageByProject implements hub.UsageStore.
func (s *Store) UsageByProject(ctx context.Context, first, last string, most int) ([]hub.ProjectUsage, error) {
	return all(ctx, s, projectUsageFields, summed("project")+" ORDER BY cpu_seconds DESC, project LIMIT "+strconv.Itoa(most), clean(first), clean(last))
}

// summed is usage_days summed up by one column, of days from $1 to $2. Counters that cannot be, which models lied into databases of before, count nothing: as sums they would be errors.
func summed(by string) string {
	text := "FROM (SELECT " + by + ", MAX(currency) AS currency"
	for _, column := range []string{"executions", "turns", "input_tokens", "output_tokens", "upload_bytes", "cost"} {
		text += ", CAST(SUM(CASE WHEN " + column + " BETWEEN 0 AND 1000000000000000 THEN " + column + " ELSE 0 END) AS BIGINT) AS " + column
	}
	return text + ", SUM(wall_seconds) AS wall_seconds, SUM(cpu_seconds) AS cpu_seconds FROM usage_days WHERE key_id = '' AND day >= $1 AND day <= $2 GROUP BY " + by + ") AS sums"
}
