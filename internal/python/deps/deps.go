// Package deps makes what code imports importable: from a scan of the code it finds the distributions that are missing, decides by policy which may be
// installed, resolves them together with all that the session has, and has them put into a layer.
package deps

import (
	"context"
	"time"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/python/pyindex"
)

// Policy says what may be installed. See config for what each setting means to a user, and its default.
type Policy struct {
	Install   bool          // false: nothing is installed, and a request for a package is told so
	MinAge    time.Duration // of a file
	NewName   time.Duration // how long ago the first file of a project outside of the table must have been uploaded
	Allow     []string      // distributions that are approved whatever their tier; a * at the end makes a prefix
	AllowOnly bool          // nothing but the base environment and Allow
	Deny      []string      // distributions, or name==version, that are never installed, also as dependencies
	Exempt    []string      // distributions that MinAge does not hold for
	Unknown   int           // unknown names that the code of one session may have an index asked for
	Offline   bool
	Build     bool // allow building from source, in a throw-away sandbox
	// BuildKnown allows that without Build for known projects whose source distributions have been there for NewName and that need no compiler.
	BuildKnown bool
	Limits     layer.Limits
	Timeout    time.Duration // of one installation
}

// Tier is how much is known about a distribution that is asked for.
type Tier string

// The tiers.
const (
	TierBase    Tier = "base"    // in the base environment
	TierTable   Tier = "table"   // among the 15,000 projects with the most downloads, or in the table of names by hand
	TierOther   Tier = "other"   // another project, which has to be old enough and more
	TierAllowed Tier = "allowed" // approved by the operator
	TierRefused Tier = "refused"
)

// Options configure an Installer.
type Options struct {
	Data   string // cove's data folder; packages/ below it is the installer's
	Env    *pyenv.Environment
	Policy Policy
	// Index is the address of the index to use instead of the one that uv or pip is set to use; "" leaves it to them.
	Index string
	// UV returns the path of uv, fetching it where there is none; nil is pyenv.UV.
	UV func(ctx context.Context) (string, error)
	// Sources says where packages come from; nil asks pyindex. What it returns must not change while the Data folder is in use, since plans are kept there.
	Sources func(ctx context.Context, uv string) ([]pyindex.Source, pyindex.Access, error)
	// Builder builds from source; nil is none.
	Builder Builder
}

// Builder makes wheels of source distributions, in a throw-away sandbox whose only network is the index behind the gateway, and of what comes out it believes nothing.
type Builder interface {
	// Build resolves requirements where some have no wheel, builds what has none, and returns the closure's wheels. Those that it built it has put into
	// the folder dir, under their file names.
	Build(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment, r Resolution, dir string, told func(installation.Progress)) ([]layer.Wheel, error)
}

// Resolution is a question to the resolver.
type Resolution struct {
	Requirements []require.Requirement
	Constraints  []require.Requirement
}

// Request is what a session asks for before it runs code.
type Request struct {
	Report  scan.Report
	Missing []string // root modules of the report, of Unless too, that the kernel cannot import, as it says; hostile
	Loaded  []string // root modules that the kernel has imported, as it says; hostile
	State   installation.State
	// Pristine says that nothing of the user's has run yet, so that a new interpreter loses nothing.
	Pristine bool
}
