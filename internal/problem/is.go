package problem

import "errors"

// Is says whether err's chain has a problem, and the first one is of that kind. It is false for a nil error.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
