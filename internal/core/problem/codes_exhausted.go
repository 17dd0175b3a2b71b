package problem

// ExhaustedCode is a code of the kind Exhausted: a limit or quota is used up.
type ExhaustedCode string

// Kind implements Code.
func (ExhaustedCode) Kind() Kind { return Exhausted }

func (c ExhaustedCode) String() string { return string(c) }

func (ExhaustedCode) sealed() {}

// The codes of the kind Exhausted. The comment of each is its documentation for clients.
const (
	// The folder is too large for an archive. Fetch parts of it, or single files.
	ArchiveTooLarge = ExhaustedCode("archive_too_large")
	// The packages to install are too large or too many together. Ask for fewer at a time.
	ClosureTooBig = ExhaustedCode("closure_too_big")
	// The data of a library is larger than allowed. Allow more with --most, or with the setting data.most.
	DataTooLarge = ExhaustedCode("data_too_large")
	// The file is larger than the server takes. Upload the file in parts, or split it.
	FileTooLarge = ExhaustedCode("file_too_large")
	// The input files are larger than the workspace. Give fewer or smaller files.
	InputsTooBig = ExhaustedCode("inputs_too_big")
	// The running requests of this key fill the memory that the server gives to one key. Wait until some of them have ended.
	MemoryBusy = ExhaustedCode("memory_busy")
	// The conversation is longer than the model can read. Start another conversation.
	ModelContextTooLong = ExhaustedCode("model_context_too_long")
	// The account at the model's provider has no quota left. Add to it, or choose another provider.
	ModelQuotaExhausted = ExhaustedCode("model_quota_exhausted")
	// The model's provider limits the rate of requests. Try again later.
	ModelRateLimited = ExhaustedCode("model_rate_limited")
	// The results are more or larger than one command saves. Write fewer or smaller files.
	OutFull = ExhaustedCode("out_full")
	// A file of a package is larger than the limit. Ask for a smaller package, or have the operator raise the limit.
	PackageTooBig = ExhaustedCode("package_too_big")
	// Too many executions wait for this kernel. Try again in a moment.
	QueueFull = ExhaustedCode("queue_full")
	// The images in use leave no room for another one. Remove some with cove image rm, delete sessions that have them, or raise images.total.
	ImagesFull = ExhaustedCode("images_full")
	// The CPU time of the day is used up. Wait until midnight UTC, or have an administrator raise the quota.
	QuotaCPU = ExhaustedCode("quota_cpu")
	// The project has no room left for files and sessions. Delete files or sessions.
	QuotaDisk = ExhaustedCode("quota_disk")
	// The key or project has as many waiting and running executions as it may. Try again in a moment.
	QuotaExecutions = ExhaustedCode("quota_executions")
	// The key or project has as many sessions in use as it may. Pause or delete a session.
	QuotaSessions = ExhaustedCode("quota_sessions")
	// The model tokens of the day are used up. Wait until midnight UTC, or have an administrator raise the quota.
	QuotaTokens = ExhaustedCode("quota_tokens")
	// The key or address sends too many requests. Wait as long as Retry-After says.
	RateLimited = ExhaustedCode("rate_limited")
	// The server's memory is full, and its disk has no room to pause another session. Try again in a moment.
	ServerDiskFull = ExhaustedCode("server_disk_full")
	// The server's memory is used up. Try again in a moment.
	ServerMemory = ExhaustedCode("server_memory")
	// The sandbox used more memory than its limit and was ended. Process the data in smaller pieces, or raise the limit.
	SessionOOM = ExhaustedCode("session_oom")
	// Too many wrong keys came from this address. Wait as long as Retry-After says.
	TooManyFailedLogins = ExhaustedCode("too_many_failed_logins")
	// The project has as many invitations as it can have. Withdraw one of them.
	TooManyInvitations = ExhaustedCode("too_many_invitations")
	// Too many turns wait for somebody to say whether their code may run. Answer or cancel some of them.
	TooManyWaiting = ExhaustedCode("too_many_waiting")
	// The session has as many kernels as it can have. Stop one of them, or use another session.
	TooManyKernels = ExhaustedCode("too_many_kernels")
	// The session has as many processes as it may have, or as many wait to write to one. End one that is not needed any more.
	TooManyProcesses = ExhaustedCode("too_many_processes")
	// The project has as many keys as it can have. Revoke one of them.
	TooManyKeys = ExhaustedCode("too_many_keys")
	// The queue of the conversation, of the key or of the project has as many questions as it can have. Wait until some were asked, or take some out.
	TooManyQuestions = ExhaustedCode("too_many_questions")
	// The key or address has as many running requests as it may. End some, such as streams that are no longer read.
	TooManyRequests = ExhaustedCode("too_many_requests")
	// The server has as many sessions in use as it can hold. Try again in a moment.
	TooManySessions = ExhaustedCode("too_many_sessions")
	// The session has as many links as it can have. Withdraw some of them.
	TooManyLinks = ExhaustedCode("too_many_links")
	// The project has as many links to conversations as it can have. Withdraw some of them.
	TooManyShares = ExhaustedCode("too_many_shares")
	// Other images are being fetched for so long that this one's turn did not come. Try again later.
	TooManyFetches = ExhaustedCode("too_many_fetches")
	// TooManyVolumes: a project has as many volumes as it can have.
	TooManyVolumes = ExhaustedCode("too_many_volumes")
	// VolumeFull: a volume has more in it than it may have.
	VolumeFull = ExhaustedCode("volume_full")
	// The key has as many unfinished uploads as it can have. Finish or drop some of them.
	TooManyUploads = ExhaustedCode("too_many_uploads")
	// The workspace is full. Remove files, or ask for a larger workspace.
	WorkspaceFull = ExhaustedCode("workspace_full")
)
