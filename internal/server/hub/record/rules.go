package record

import (
	"cmp"
	"slices"
	"strings"

	"cove/internal/code/redact"
	"cove/internal/code/screen"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// The kinds of things that are taken out of what code emits; see redact.Kinds.
const (
	redactSecrets = "secrets"
	redactGuesses = "guesses"
	redactCards   = "cards"
	redactPeople  = "people"
	redactEmails  = "emails"
	redactOff     = "off" // nothing
)

// Redaction says what is taken out of what code emits before anybody sees it, the model too, and before it is stored.
type Redaction struct {
	Kinds []string `json:"kinds"` // secrets, guesses, cards, people, emails; none or off: nothing is
}

// Check returns what is wrong with a redaction, as a problem with code redaction_invalid.
func (r Redaction) Check() error {
	all := []string{redactSecrets, redactGuesses, redactCards, redactPeople, redactEmails, redactOff}
	for _, kind := range r.Kinds {
		if !slices.Contains(all, kind) {
			return problem.New(problem.RedactionInvalid, "there is no kind "+kind+" of things to be redacted").WithHint("the kinds are " + strings.Join(all, ", "))
		}
	}
	return nil
}

// KindSet returns the kinds as package redact has them.
func (r Redaction) KindSet() redact.Kinds {
	has := func(kind string) bool { return slices.Contains(r.Kinds, kind) }
	return redact.Kinds{Secrets: has(redactSecrets), Guesses: has(redactGuesses), Cards: has(redactCards), People: has(redactPeople), Emails: has(redactEmails)}
}

// Event returns the rollback as an execution's event.
func (r Rollback) Event() kernel.Rollback {
	return kernel.Rollback{At: r.At, To: r.To, Reason: r.Reason, Executions: r.Executions, More: r.More, Files: r.Files}
}

// CodePolicy says what becomes of code that calls for a second look; see package caution.
type CodePolicy string

// The policies, the least strict first.
const (
	CodeOff    CodePolicy = "off"    // nobody looks
	CodeNote   CodePolicy = "note"   // the findings are recorded with the execution
	CodeAsk    CodePolicy = "ask"    // it waits for a user's word: a turn as with ApprovalAlways, an execution until it is asked for with NewExecution.Approved
	CodeRefuse CodePolicy = "refuse" // it does not run
)

func policies() []CodePolicy { return []CodePolicy{CodeOff, CodeNote, CodeAsk, CodeRefuse} }

// CodeRules say what becomes of code before it runs. Its zero value looks at nothing.
type CodeRules struct {
	Policy CodePolicy `json:"policy"`
	// Rules are those of package screen that CodeAsk and CodeRefuse are about besides the serious ones.
	Rules []string `json:"rules,omitempty"`
}

// Check returns what is wrong with the rules, as a problem with code code_rules_invalid.
func (r CodeRules) Check() error {
	if r.Policy != "" && !slices.Contains(policies(), r.Policy) {
		return problem.New(problem.CodeRulesInvalid, "there is no policy "+string(r.Policy)+" for code").WithHint("the policies are off, note, ask and refuse")
	}
	for _, rule := range r.Rules {
		if !screen.Known(rule) {
			p := problem.New(problem.CodeRulesInvalid, "there is no rule "+rule+" for code")
			names := ""
			for _, r := range screen.Rules() {
				names += ", " + r.Name
			}
			return p.WithHint("the rules are " + names[2:])
		}
	}
	return nil
}

// Concern says whether the policy is about one of the findings.
func (r CodeRules) Concern(found []screen.Finding) bool {
	return slices.ContainsFunc(found, func(f screen.Finding) bool { return screen.Serious(f.Rule) || slices.Contains(r.Rules, f.Rule) })
}

// StrictestRules is what holds where both do.
func StrictestRules(a, b CodeRules) CodeRules {
	out := CodeRules{Policy: a.Policy, Rules: slices.Concat(a.Rules, b.Rules)}
	if slices.Index(policies(), cmp.Or(b.Policy, CodeOff)) > slices.Index(policies(), cmp.Or(a.Policy, CodeOff)) {
		out.Policy = b.Policy
	}
	return out
}
