package hub

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
	"cove/internal/server/stream"
	"cove/internal/sessions/pool"
)

const (
	// SessionMemory is about what an idle session of the standard environment takes that has no memory in common with others, in bytes.
	SessionMemory = 120 << 20
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
	// roomPatience is how long a session waits for room in memory, before the caller is told to try again.
	roomPatience = 5 * time.Second
)

// capacity returns how many sessions may be in memory: want, or, where want is no limit, as many of cost bytes each as fit into three quarters of the memory that is available now.
func capacity(want int, cost int64) int {
	if want > 0 {
		return want
	}
	n, err := pool.SizeFor(1<<16, cost/3) // which takes a quarter
	if err != nil {
		return 8
	}
	return n
}

func exhausted(code problem.ExhaustedCode, message string) *problem.Error {
	return problem.New(code, message).WithHint("try again in a moment")
}

// over says whether one more than have is above limit, where 0 is no limit.
func over[T int | int64 | float64 | time.Duration](have, limit T) bool {
	return limit > 0 && have >= limit
}

// allowance is what a project and a key may use.
type allowance struct{ project, key Quota }

func (h *Hub) quotas(ctx context.Context, project, key string) (allowance, error) {
	return h.meter.quotas(ctx, project, key)
}

// mayRun says whether there is CPU time left today.
func (h *Hub) mayRun(ctx context.Context, project, key string) error {
	return h.within(ctx, project, key, problem.QuotaCPU, "the CPU time of today is used up", func(q Quota, u Usage) bool {
		return over(u.CPUSeconds, q.CPUSeconds)
	})
}

// mayAsk says whether there are tokens left today.
func (h *Hub) mayAsk(ctx context.Context, project, key string) error {
	return h.within(ctx, project, key, problem.QuotaTokens, "the tokens of today are used up", func(q Quota, u Usage) bool {
		return over(model.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens}.Total(), q.Tokens)
	})
}

func (h *Hub) within(ctx context.Context, project, key string, code problem.ExhaustedCode, message string, used func(Quota, Usage) bool) error {
	limits, err := h.quotas(ctx, project, key)
	if err != nil {
		return err
	}
	for i, quota := range []Quota{limits.project, limits.key} {
		if quota.CPUSeconds == 0 && quota.Tokens == 0 || i == 1 && key == "" {
			continue
		}
		u, err := h.meter.today(ctx, project, []string{"", key}[i])
		if err != nil {
			return err
		}
		if used(quota, u) {
			return problem.New(code, message).WithHint("the count starts again at midnight UTC; an administrator can raise the quota")
		}
	}
	return nil
}

// mayStore says whether the project may put so many bytes more on the disk.
func (h *Hub) mayStore(ctx context.Context, project, key string, more int64) error {
	limits, err := h.quotas(ctx, project, key)
	if err != nil {
		return err
	}
	limit := record.Tighter(limits.key.Disk, limits.project.Disk)
	if limit == 0 {
		return nil
	}
	held, err := h.work.Store.HeldDisk(ctx, project)
	if err != nil {
		return err
	}
	if held+more > limit || more == 0 && held >= limit {
		return problem.New(problem.QuotaDisk, "the project's disk quota for files and sessions is used up").WithHint("delete files or sessions that are not needed")
	}
	return nil
}

// spend counts what a principal has used. It returns at once; the counters reach the store within seconds.
func (h *Hub) spend(_ context.Context, who auth.Principal, u Usage) {
	h.meter.add(who.Project, who.Key, u)
}

// meter sums what is used. Sums that are not written yet, those of about a second, are lost when the server is killed.
type meter struct {
	h  *Hub
	id string // this meter's name in Additions

	mu      sync.Mutex
	allowed map[[2]string]allowed
	sums    map[sumKey]*sum
	pending map[sumKey]Usage
	unsure  map[sumKey]addition // additions without an answer from the store; they are repeated before what is pending
	number  int64               // of the last addition
	written int                 // additions that the store has answered
	works   bool
}

// addition is an addition to the store's counters that may have succeeded.
type addition struct {
	number int64
	Usage
}

type allowed struct {
	allowance
	until time.Time
}

type sumKey struct{ day, project, key string }

// sum is a day's use of a project or a key: the store's sum, and what was used after it was read.
type sum struct {
	stored, after Usage
	until         time.Time
}

func newMeter(h *Hub) *meter {
	return &meter{
		h: h, id: ident.New("mtr"), allowed: map[[2]string]allowed{}, sums: map[sumKey]*sum{}, pending: map[sumKey]Usage{}, unsure: map[sumKey]addition{},
	}
}

func (m *meter) day() string { return m.h.work.Now().UTC().Format(time.DateOnly) }

func (m *meter) quotas(ctx context.Context, project, key string) (allowance, error) {
	limits := allowance{m.h.o.Limits.Project, m.h.o.Limits.Key}
	if m.h.o.Quotas == nil {
		return limits, nil
	}
	m.mu.Lock()
	known, ok := m.allowed[[2]string{project, key}]
	m.mu.Unlock()
	if ok && m.h.work.Now().Before(known.until) {
		return known.allowance, nil
	}
	ofProject, ofKey, err := m.h.o.Quotas(ctx, project, key)
	if err != nil {
		return limits, err
	}
	limits.project, limits.key = *cmp.Or(ofProject, &limits.project), *cmp.Or(ofKey, &limits.key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.allowed) >= remembered {
		clear(m.allowed)
	}
	m.allowed[[2]string{project, key}] = allowed{limits, m.h.work.Now().Add(quotaLife)}
	return limits, nil
}

// today returns what was used today, by the project where key is "".
func (m *meter) today(ctx context.Context, project, key string) (Usage, error) {
	k := sumKey{m.day(), project, key}
	m.mu.Lock()
	if s := m.sums[k]; s != nil && m.h.work.Now().Before(s.until) {
		defer m.mu.Unlock()
		return plus(s.stored, s.after), nil
	}
	m.mu.Unlock()
	m.mu.Lock()
	written := m.written
	m.mu.Unlock()
	days, err := m.h.work.Store.Usage(ctx, project, key, k.day, k.day)
	if err != nil {
		return Usage{}, err
	}
	m.mu.Lock()
	// What reached the store meanwhile may be missing from what was read, and is no longer pending. Then it is read again; not for ever, since a busy server always writes.
	for again := 0; m.written != written && again < readsAgain; again++ {
		written = m.written
		m.mu.Unlock()
		if days, err = m.h.work.Store.Usage(ctx, project, key, k.day, k.day); err != nil {
			return Usage{}, err
		}
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	s := &sum{until: m.h.work.Now().Add(quotaLife)}
	for _, d := range days {
		s.stored = plus(s.stored, d)
	}
	after := func(p sumKey, u Usage) {
		if p.day == k.day && p.project == project && (key == "" || p.key == key) {
			s.after = plus(s.after, u)
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
	return plus(s.stored, s.after), nil
}

func (m *meter) add(project, key string, u Usage) {
	m.mu.Lock()
	day := m.day()
	for _, k := range []sumKey{{day, project, ""}, {day, project, key}} {
		if s := m.sums[k]; s != nil {
			s.after = plus(s.after, u)
		}
		if key == "" {
			break
		}
	}
	k := sumKey{day, project, key}
	m.pending[k] = plus(m.pending[k], u)
	begin := !m.works
	m.works = true
	m.mu.Unlock()
	if begin {
		m.h.work.RunInBackground(m.write)
	}
}

// write stores what is pending until nothing is left.
func (m *meter) write(ctx context.Context) {
	for {
		select {
		case <-time.After(meterDelay):
		case <-ctx.Done():
		}
		due := m.due()
		if len(due) == 0 {
			return
		}
		m.store(ctx, due)
		if ctx.Err() != nil && m.stuck() {
			return
		}
	}
}

// due returns the sums that are to be written; when there are none, writing ends.
func (m *meter) due() []sumKey {
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

// stuck says whether the store has not accepted all additions.
func (m *meter) stuck() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.unsure) > 0
}

// store writes sums. Those that the store does not accept wait for the next time, if there is one.
func (m *meter) store(ctx context.Context, due []sumKey) {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterPatience)
	defer cancel()
	for _, k := range due {
		for range 2 { // the unsure addition first, then what is pending
			a, ok := m.next(k)
			if !ok {
				break
			}
			err := m.h.work.Store.AddUsage(writing, k.project, k.key, Addition{By: m.id, Number: a.number}, a.Usage)
			if err != nil && !stream.Refused(err) {
				m.h.work.Log.WarnContext(ctx, "usage was not stored yet", "project", k.project, "error", err)
				break
			}
			if err != nil {
				m.h.work.Log.ErrorContext(ctx, "usage was refused by the store and is not counted", "project", k.project, "key", k.key, "usage", a.Usage, "error", err)
			}
			m.mu.Lock()
			m.written++
			delete(m.unsure, k)
			m.mu.Unlock()
		}
	}
}

// next returns the next addition to a sum: the one that may have succeeded already, under its old number, or else everything since then under a new number.
func (m *meter) next(k sumKey) (addition, bool) {
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

func plus(a, b Usage) Usage {
	cost, currency := a.Cost+b.Cost, cmp.Or(b.Currency, a.Currency) // a process has one
	tokens := model.Usage{InputTokens: a.InputTokens, OutputTokens: a.OutputTokens}.Plus(model.Usage{InputTokens: b.InputTokens, OutputTokens: b.OutputTokens})
	return Usage{
		Day:        cmp.Or(a.Day, b.Day),
		Executions: a.Executions + b.Executions, WallSeconds: a.WallSeconds + b.WallSeconds, CPUSeconds: a.CPUSeconds + b.CPUSeconds,
		Turns: a.Turns + b.Turns, InputTokens: tokens.InputTokens, OutputTokens: tokens.OutputTokens,
		UploadBytes: a.UploadBytes + b.UploadBytes, Cost: cost, Currency: currency,
	}
}
