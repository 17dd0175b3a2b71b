package store

import (
	"context"
	"fmt"
	"strings"

	"cove/internal/server/hub"
)

// answerCounts are the columns of answer_days that are sums.
func answerCounts(d *hub.AnswerDay) []field {
	fields := []field{
		{"turns", countOf(&d.Turns)}, {"completed", countOf(&d.Completed)}, {"failed", countOf(&d.Failed)}, {"canceled", countOf(&d.Canceled)}, {"steps", countOf(&d.Steps)},
		{"failed_steps", countOf(&d.FailedSteps)}, {"repaired", countOf(&d.Repaired)}, {"installs", countOf(&d.Installs)}, {"failed_installs", countOf(&d.FailedInstalls)},
		{"input_tokens", tokens{&d.InputTokens}}, {"output_tokens", tokens{&d.OutputTokens}}, {"seconds", decimal{&d.Seconds}}, {"run_seconds", decimal{&d.RunSeconds}},
		{"install_seconds", decimal{&d.InstallSeconds}},
	}
	for n := range d.Within {
		name := "longer"
		if n < len(d.Within)-1 {
			name = fmt.Sprint("within_", 1<<n)
		}
		fields = append(fields, field{name, countOf(&d.Within[n])})
	}
	return fields
}

func answerFields(d *hub.AnswerDay) []field {
	return append([]field{{"day", textOf(&d.Day)}, {"model", textOf(&d.Model)}}, answerCounts(d)...)
}

// addAnswer adds a turn that ended to the figures of its day.
func addAnswer(ctx context.Context, q queryer, t hub.Turn) error {
	d := t.AnswerDay()
	var sums []string
	for _, f := range answerCounts(&d) {
		old := "answer_days." + f.name
		if strings.HasSuffix(f.name, "_tokens") { // as in AddUsage: what cannot be was a model's lie
			old = "CASE WHEN " + old + " BETWEEN 0 AND 1125899906842624 THEN " + old + " ELSE 0 END"
		}
		sums = append(sums, f.name+" = "+old+" + excluded."+f.name)
	}
	return insert(ctx, q, "answer_days", append([]field{{"project", textOf(&t.Project)}}, answerFields(&d)...), "ON CONFLICT (project, day, model) DO UPDATE SET "+strings.Join(sums, ", "))
}

// Answers implements hub.AnswerStore.
func (s *Store) Answers(ctx context.Context, project, first, last string) ([]hub.AnswerDay, error) {
	const days = " AND day >= $2 AND day <= $3"
	if project != "" {
		return all(ctx, s, answerFields, "FROM answer_days WHERE project = $1"+days+" ORDER BY day DESC, model", clean(project), clean(first), clean(last))
	}
	text := "FROM (SELECT day, model"
	for _, f := range answerCounts(&hub.AnswerDay{}) {
		kind := "BIGINT"
		if strings.HasSuffix(f.name, "seconds") {
			kind = "DOUBLE PRECISION"
		}
		text += ", CAST(SUM(" + f.name + ") AS " + kind + ") AS " + f.name
	}
	return all(ctx, s, answerFields, text+" FROM answer_days WHERE project <> $1"+days+" GROUP BY day, model) AS sums ORDER BY day DESC, model", "", clean(first), clean(last))
}
