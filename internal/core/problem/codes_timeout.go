package problem

// TimeoutCode is a code of the kind Timeout: a deadline passed.
type TimeoutCode string

// Kind implements Code.
func (TimeoutCode) Kind() Kind { return Timeout }

func (c TimeoutCode) String() string { return string(c) }

func (TimeoutCode) sealed() {}

// The codes of the kind Timeout. The comment of each is its documentation for clients.
const (
	// Building a package from source took too long. Use a version that has wheels, or raise packages.timeout.
	BuildTimeout = TimeoutCode("build_timeout")
	// The package index did not answer in time. Try again later.
	IndexTimeout = TimeoutCode("index_timeout")
	// The Python interpreter did not answer in time. Try again, or restart the kernel.
	KernelAttachTimeout = TimeoutCode("kernel_attach_timeout")
	// The Python interpreter did not become ready in time. Try again when the machine is less busy.
	KernelStartTimeout = TimeoutCode("kernel_start_timeout")
	// The model's provider did not accept the connection in time. Check the address of the service and the network.
	ModelConnectTimeout = TimeoutCode("model_connect_timeout")
	// The time for the question ended while the model was answering. Ask for less, or raise the limit.
	ModelDeadline = TimeoutCode("model_deadline")
	// The model did not begin its answer in time. Try again, or choose another model.
	ModelFirstTokenTimeout = TimeoutCode("model_first_token_timeout")
	// The model stopped in the middle of its answer. Ask again, or choose another model.
	ModelStalled = TimeoutCode("model_stalled")
	// The request did not arrive in time. Send it again over a faster connection.
	RequestTimeout = TimeoutCode("request_timeout")
	// Resolving or installing the packages took too long. Try again, or raise packages.timeout.
	ResolveTimeout = TimeoutCode("resolve_timeout")
	// The version of cove that can read the saved session did not end in time. Try again when the machine is less busy.
	SalvageTimeout = TimeoutCode("salvage_timeout")
	// The sandbox did not start in time. Try again when the machine is less busy, or run `cove doctor`.
	SandboxStartTimeout = TimeoutCode("sandbox_start_timeout")
	// Searching the code for imports took too long. Try again.
	ScanTimeout = TimeoutCode("scan_timeout")
	// The search took too long. Search for longer or rarer words.
	SearchTooBroad = TimeoutCode("search_too_broad")
	// The request took too long. Try again.
	TimedOut = TimeoutCode("timeout")
	// The time given to the question is over. Ask for less at once, or raise the limit.
	TurnTimeout = TimeoutCode("turn_timeout")
)
