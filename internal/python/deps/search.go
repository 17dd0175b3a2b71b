package deps

import "fmt"

// A search for a plan goes from step to step by what the one before has found:
//
//	step      tries                                           solved   unsolved   mended    emptied
//	settle    leaving alone everything that is installed      found    recall
//	recall    change, with answers that are remembered        found    mend
//	mend      leaving out or relaxing what cannot be had               build      settle    empty
//	build     wheels made here                                found    change
//	change    other versions of what is installed             found    salvage
//	salvage   without the wants that stand in the way         found
//
// An error of a step ends the search in failed. mend leads back to settle at most rounds-1 times; after that it counts as unsolved. A step that does not apply,
// as build where nothing may be built, says unsolved.
type step int

const (
	stepSettle step = iota
	stepRecall
	stepMend
	stepBuild
	stepChange
	stepSalvage
	stepFound  // there is a plan
	stepEmpty  // nothing of what was wanted is left to plan for
	stepFailed // there is no plan, or the search itself failed
)

func (s step) String() string {
	return [...]string{"settle", "recall", "mend", "build", "change", "salvage", "found", "empty", "failed"}[s]
}

// verdict is what a step has found.
type verdict int

const (
	solved   verdict = iota // a plan
	unsolved                // none
	mended                  // other wants, for which the search begins again
	emptied                 // no want that can be had
)

func (v verdict) String() string { return [...]string{"solved", "unsolved", "mended", "emptied"}[v] }

// rounds bounds how often what cannot be had is left out or relaxed and the rest is tried again.
const rounds = 3

// leads is where a verdict leads from a step.
func leads(at step, v verdict) (step, bool) {
	next, ok := map[step]map[verdict]step{
		stepSettle:  {solved: stepFound, unsolved: stepRecall},
		stepRecall:  {solved: stepFound, unsolved: stepMend},
		stepMend:    {unsolved: stepBuild, mended: stepSettle, emptied: stepEmpty},
		stepBuild:   {solved: stepFound, unsolved: stepChange},
		stepChange:  {solved: stepFound, unsolved: stepSalvage},
		stepSalvage: {solved: stepFound},
	}[at][v]
	return next, ok
}

// walk has do try one step after the other, and returns the one that the search ended in: found, empty, or failed with an error.
func walk(do func(at step) (verdict, error)) (end step, err error) {
	at, round := stepSettle, 1
	for at < stepFound {
		v, err := do(at)
		if err != nil {
			return stepFailed, err
		}
		if v == mended {
			if round == rounds {
				v = unsolved
			}
			round++
		}
		next, ok := leads(at, v)
		if !ok {
			return stepFailed, fmt.Errorf("plan an installation: %s cannot end %s", at, v)
		}
		at = next
	}
	return at, nil
}
