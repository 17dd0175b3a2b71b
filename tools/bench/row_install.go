package bench

import (
	"context"
	"fmt"
	"time"
)

// wantedPackage is what the row of installations imports: three wheels, one with compiled code, that the standard environment lacks.
const wantedPackage, wantedModule = "sqlalchemy", "sqlalchemy"

func wanted() Task {
	return Task{Setup: "import " + wantedModule, Expr: "len(" + wantedModule + ".__version__) > 0", Want: "True"}
}

// Readiness says how much of a package is there before it is wanted.
type Readiness string

// The readinesses.
const (
	Installed  Readiness = "installed"  // for somebody else: of cove, its layer; of installers without such a thing, as Downloaded
	Downloaded Readiness = "downloaded" // its wheels, and what was learnt about versions
)

// Installing is a Subject that can give something that runs already a package that it does not have.
type Installing interface {
	// Lacking returns a Live without the package, which is ready as r says. install is what has to be done before the import; it is timed.
	Lacking(ctx context.Context, r Readiness) (l Live, install func(context.Context) error, err error)
	// Having returns a Live in which the package can be imported and has not been.
	Having(ctx context.Context) (Live, error)
}

func installRow() Row {
	detail := "import " + wantedModule + " (three wheels, one compiled) in a session that never heard of it, less the same import where it is there already. "
	return Row{
		ID: "install", Title: "a package that is not there", Rounds: 20, Quick: 4,
		Measures: []Measure{
			{ID: "install-layer", Title: "added by a package that others have installed", Unit: "ms", Detail: detail + "cove has its layer; uv and pip have their caches."},
			{ID: "install-wheels", Title: "added by a package with cached wheels", Unit: "ms", Detail: detail + "Everything was downloaded before, nothing is installed."},
		},
		Able: as[Installing]("it does not install packages"),
		Round: func(ctx context.Context, s Subject, rec Recorder) error {
			having, err := importTime(ctx, func(ctx context.Context) (Live, func(context.Context) error, error) {
				l, err := s.(Installing).Having(ctx)
				return l, nil, err
			})
			if err != nil {
				return fmt.Errorf("import what is there: %w", err)
			}
			for i, r := range []Readiness{Installed, Downloaded} {
				lacking, err := importTime(ctx, func(ctx context.Context) (Live, func(context.Context) error, error) {
					return s.(Installing).Lacking(ctx, r)
				})
				if err != nil {
					return fmt.Errorf("import what is %s: %w", r, err)
				}
				rec.took(i, lacking-having)
			}
			return nil
		},
	}
}

// importTime is how long it takes to install the package, where that has to be asked for, and to import it.
func importTime(ctx context.Context, open func(context.Context) (Live, func(context.Context) error, error)) (d time.Duration, err error) {
	l, install, err := open(ctx)
	if err != nil {
		return 0, err
	}
	defer free(ctx, l, &err)
	begun := time.Now()
	if install != nil {
		if err := install(ctx); err != nil {
			return 0, err
		}
	}
	return timed(ctx, begun, l, wanted())
}
