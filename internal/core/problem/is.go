package problem

import (
	"errors"
	"slices"
)

// Is says whether err's chain has a problem, and the first one is of that kind. It is false for a nil error.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && e.Kind == kind
}

// Has says whether err's chain has a problem, and the first one has one of these codes. It is false for a nil error.
func Has(err error, codes ...Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && slices.ContainsFunc(codes, func(c Code) bool { return c.String() == e.Code })
}
