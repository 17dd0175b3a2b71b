// Package meter knows what a project and a key may use and have used: quotas, the sums of a day, and the rules for code, for redaction and for networks that are set
// with quotas. It changes with what can be bounded or counted.
package meter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/work"
	"cove/internal/server/stream"
)

const (
	// quotaLife is how long quotas and sums are used before they are read again.
	quotaLife = 5 * time.Second
	// remembered is how many of them are kept before all are dropped and read again.
	remembered = 10_000
	// readsAgain is how often a sum is read again that changed while it was read.
	readsAgain = 8
	// meterDelay is how long sums wait to be written.
	meterDelay = time.Second
	// meterPatience is how long one attempt to write them may take.
	meterPatience = 10 * time.Second
)

// IsFull says whether one more than have is above limit, where 0 is no limit.
func IsFull[T int | int64 | float64 | time.Duration](have, limit T) bool {
	return limit > 0 && have >= limit
}

// Allowance is what a project and a key may use.
type Allowance struct{ Project, Key record.Quota }

// MayRun says whether there is CPU time left today.
func (m *Meter) MayRun(ctx context.Context, project, key string) error {
	return m.checkToday(ctx, project, key, problem.QuotaCPU, "the CPU time of today is used up", func(q record.Quota, u record.Usage) bool {
		return IsFull(u.CPUSeconds, q.CPUSeconds)
	})
}

// MayAsk says whether there are tokens left today.
func (m *Meter) MayAsk(ctx context.Context, project, key string) error {
	return m.checkToday(ctx, project, key, problem.QuotaTokens, "the tokens of today are used up", func(q record.Quota, u record.Usage) bool {
		return IsFull(model.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens}.Total(), q.Tokens)
	})
}

func (m *Meter) checkToday(ctx context.Context, project, key string, code problem.ExhaustedCode, message string, used func(record.Quota, record.Usage) bool) error {
	limits, err := m.Quotas(ctx, project, key)
	if err != nil {
		return err
	}
	for i, quota := range []record.Quota{limits.Project, limits.Key} {
		if quota.CPUSeconds == 0 && quota.Tokens == 0 || i == 1 && key == "" {
			continue
		}
		u, err := m.usedToday(ctx, project, []string{"", key}[i])
		if err != nil {
			return err
		}
		if used(quota, u) {
			return problem.New(code, message).WithHint("the count starts again at midnight UTC; an administrator can raise the quota")
		}
	}
	return nil
}

// MayStore says whether the project may put so many bytes more on the disk.
func (m *Meter) MayStore(ctx context.Context, project, key string, more int64) error {
	limits, err := m.Quotas(ctx, project, key)
	if err != nil {
		return err
	}
	limit := record.Tighter(limits.Key.Disk, limits.Project.Disk)
	if limit == 0 {
		return nil
	}
	held, err := m.work.Store.HeldDisk(ctx, project)
	if err != nil {
		return err
	}
	if held+more > limit || more == 0 && held >= limit {
		return problem.New(problem.QuotaDisk, "the project's disk quota for files and sessions is used up").WithHint("delete files or sessions that are not needed")
	}
	return nil
}

// AddUsage counts what a principal has used. It returns at once; the counters reach the store within seconds.
func (m *Meter) AddUsage(_ context.Context, who auth.Principal, u record.Usage) {
	m.AddUsageOf(who.Project, who.Key, u)
}

// Options are what a Meter is made of.
type Options struct {
	Limits record.Limits    // those of projects and keys that have none of their own
	Code   record.CodeRules // for projects without their own
	// Redaction is for projects without their own.
	Redaction record.Redaction
	// Quotas returns what a project and a key may use where that was set for them; nil quotas are those of Limits.
	Quotas func(ctx context.Context, project, key string) (ofProject, ofKey *record.Quota, err error)
}

// Meter sums what is used. Sums that are not written yet, those of about a second, are lost when the server is killed.
//
// Its lock, mu, is a leaf: no lock is taken and the store is not asked under it.
type Meter struct {
	work *work.Core
	o    Options
	id   string // this meter's name in Additions

	mu      sync.Mutex
	allowed map[[2]string]allowed
	sums    map[sumKey]*sum
	pending map[sumKey]record.Usage
	unsure  map[sumKey]addition // additions without an answer from the store; they are repeated before what is pending
	number  int64               // of the last addition
	written int                 // additions that the store has answered
	works   bool
}

// addition is an addition to the store's counters that may have succeeded.
type addition struct {
	number int64
	record.Usage
}

type allowed struct {
	Allowance
	until time.Time
}

type sumKey struct{ day, project, key string }

// sum is a day's use of a project or a key: the store's sum, and what was used after it was read.
type sum struct {
	stored, after record.Usage
	until         time.Time
}

// New returns a meter. It writes nothing before something is used.
func New(core *work.Core, o Options) *Meter {
	return &Meter{
		work: core, o: o, id: ident.New("mtr"), allowed: map[[2]string]allowed{}, sums: map[sumKey]*sum{}, pending: map[sumKey]record.Usage{}, unsure: map[sumKey]addition{},
	}
}

func (m *Meter) day() string { return m.work.Now().UTC().Format(time.DateOnly) }

// Quotas returns what a project and a key may use.
func (m *Meter) Quotas(ctx context.Context, project, key string) (Allowance, error) {
	limits := Allowance{m.o.Limits.Project, m.o.Limits.Key}
	if m.o.Quotas == nil {
		return limits, nil
	}
	m.mu.Lock()
	known, ok := m.allowed[[2]string{project, key}]
	m.mu.Unlock()
	if ok && m.work.Now().Before(known.until) {
		return known.Allowance, nil
	}
	ofProject, ofKey, err := m.o.Quotas(ctx, project, key)
	if err != nil {
		return limits, err
	}
	limits.Project, limits.Key = *cmp.Or(ofProject, &limits.Project), *cmp.Or(ofKey, &limits.Key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.allowed) >= remembered {
		clear(m.allowed)
	}
	m.allowed[[2]string{project, key}] = allowed{limits, m.work.Now().Add(quotaLife)}
	return limits, nil
}

// usedToday returns what was used today, by the project where key is "".
func (m *Meter) usedToday(ctx context.Context, project, key string) (record.Usage, error) {
	k := sumKey{m.day(), project, key}
	m.mu.Lock()
	if s := m.sums[k]; s != nil && m.work.Now().Before(s.until) {
		defer m.mu.Unlock()
		return addUsage(s.stored, s.after), nil
	}
	m.mu.Unlock()
	m.mu.Lock()
	written := m.written
	m.mu.Unlock()
	days, err := m.work.Store.Usage(ctx, project, key, k.day, k.day)
	if err != nil {
		return record.Usage{}, err
	}
	m.mu.Lock()
	// What reached the store meanwhile may be missing from what was read, and is no longer pending. Then it is read again; not for ever, since a busy server always writes.
	for again := 0; m.written != written && again < readsAgain; again++ {
		written = m.written
		m.mu.Unlock()
		if days, err = m.work.Store.Usage(ctx, project, key, k.day, k.day); err != nil {
			return record.Usage{}, err
		}
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	s := &sum{until: m.work.Now().Add(quotaLife)}
	for _, d := range days {
		s.stored = addUsage(s.stored, d)
	}
	after := func(p sumKey, u record.Usage) {
		if p.day == k.day && p.project == project && (key == "" || p.key == key) {
			s.after = addUsage(s.after, u)
		}
	}
	for p, u := range m.pending {
		after(p, u)
	}
	for p, a := range m.unsure {
		after(p, a.Usage)
	}
	if len(m.sums) >= remembered {
		clear(m.sums)
	}
	m.sums[k] = s
	return addUsage(s.stored, s.after), nil
}

// AddUsageOf is AddUsage for what a project uses by a key, "" for none.
func (m *Meter) AddUsageOf(project, key string, u record.Usage) {
	m.mu.Lock()
	day := m.day()
	for _, k := range []sumKey{{day, project, ""}, {day, project, key}} {
		if s := m.sums[k]; s != nil {
			s.after = addUsage(s.after, u)
		}
		if key == "" {
			break
		}
	}
	k := sumKey{day, project, key}
	m.pending[k] = addUsage(m.pending[k], u)
	begin := !m.works
	m.works = true
	m.mu.Unlock()
	if begin {
		m.work.RunInBackground(m.writeSums)
	}
}

// writeSums stores what is pending until nothing is left.
func (m *Meter) writeSums(ctx context.Context) {
	for {
		select {
		case <-time.After(meterDelay):
		case <-ctx.Done():
		}
		due := m.takeDue()
		if len(due) == 0 {
			return
		}
		m.storeSums(ctx, due)
		if ctx.Err() != nil && m.hasUnsure() {
			return
		}
	}
}

// takeDue returns the sums that are to be written; when there are none, writing ends.
func (m *Meter) takeDue() []sumKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	due := slices.Collect(maps.Keys(m.pending))
	for k := range m.unsure {
		if _, ok := m.pending[k]; !ok {
			due = append(due, k)
		}
	}
	m.works = len(due) > 0
	return due
}

// hasUnsure says whether the store has not accepted all additions.
func (m *Meter) hasUnsure() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.unsure) > 0
}

// storeSums writes sums. Those that the store does not accept wait for the next time, if there is one.
func (m *Meter) storeSums(ctx context.Context, due []sumKey) {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterPatience)
	defer cancel()
	for _, k := range due {
		for range 2 { // the unsure addition first, then what is pending
			a, ok := m.nextAddition(k)
			if !ok {
				break
			}
			err := m.work.Store.AddUsage(writing, k.project, k.key, record.Addition{By: m.id, Number: a.number}, a.Usage)
			if err != nil && !stream.Refused(err) {
				m.work.Log.WarnContext(ctx, "usage was not stored yet", "project", k.project, "error", err)
				break
			}
			if err != nil {
				m.work.Log.ErrorContext(ctx, "usage was refused by the store and is not counted", "project", k.project, "key", k.key, "usage", a.Usage, "error", err)
			}
			m.mu.Lock()
			m.written++
			delete(m.unsure, k)
			m.mu.Unlock()
		}
	}
}

// nextAddition returns the next addition to a sum: the one that may have succeeded already, under its old number, or else everything since then under a new number.
func (m *Meter) nextAddition(k sumKey) (addition, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.unsure[k]; ok {
		return a, true
	}
	u, ok := m.pending[k]
	if !ok {
		return addition{}, false
	}
	delete(m.pending, k)
	m.number++
	u.Day = k.day
	a := addition{m.number, u}
	m.unsure[k] = a
	return a, true
}

func addUsage(a, b record.Usage) record.Usage {
	cost, currency := a.Cost+b.Cost, cmp.Or(b.Currency, a.Currency) // a process has one
	tokens := model.Usage{InputTokens: a.InputTokens, OutputTokens: a.OutputTokens}.Plus(model.Usage{InputTokens: b.InputTokens, OutputTokens: b.OutputTokens})
	return record.Usage{
		Day:        cmp.Or(a.Day, b.Day),
		Executions: a.Executions + b.Executions, WallSeconds: a.WallSeconds + b.WallSeconds, CPUSeconds: a.CPUSeconds + b.CPUSeconds,
		Turns: a.Turns + b.Turns, InputTokens: tokens.InputTokens, OutputTokens: tokens.OutputTokens,
		UploadBytes: a.UploadBytes + b.UploadBytes, Cost: cost, Currency: currency,
	}
}
