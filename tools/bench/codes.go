package bench

import "cove/internal/core/problem"

// The codes of what keeps a benchmark from running. They are not among those of the server and the commands.
const (
	// The benchmark needs root to start docker. Run the benchmark as root.
	codeNeedsRoot = problem.DeniedCode("bench_needs_root")
	// The benchmark has no cove to measure. Build one with `make bench`, or name one with --cove.
	CodeNoCove = problem.InvalidCode("bench_no_cove")
	// The benchmark has no row of this name. Choose one of those that the message lists.
	codeUnknownRow = problem.InvalidCode("bench_unknown_row")
	// The benchmark has no subject of this name. Choose one of those that the message lists.
	codeUnknownSubject = problem.InvalidCode("bench_unknown_subject")
	// Another benchmark is running. Wait for its end.
	codeBusy = problem.UnavailableCode("bench_busy")
	// The benchmark could not make a root file system with debootstrap. See the log of the benchmark.
	codeDebootstrap = problem.UnavailableCode("bench_debootstrap")
	// The benchmark could not start a docker daemon. See the log of the benchmark.
	codeDockerd = problem.UnavailableCode("bench_dockerd")
	// The benchmark could not install the Jupyter kernel gateway. Make sure that pip can install it.
	codeGatewayInstall = problem.UnavailableCode("bench_gateway_install")
	// The benchmark found no package mirror of the distribution. Run `apt-get update` first.
	codeNoMirror = problem.UnavailableCode("bench_no_mirror")
	// The path of the data folder is too long for docker's socket. Set COVE_HOME to a shorter one.
	codePathTooLong = problem.UnavailableCode("bench_path_too_long")
	// A program that the benchmark compares with is not installed. Install the program, or leave its rows out.
	codePeerMissing = problem.UnavailableCode("bench_peer_missing")
	// The benchmark could not make a virtual environment with pip. Install the package python3-venv.
	codePip = problem.UnavailableCode("bench_pip")
)
