package problem

// UnavailableCode is a code of the kind Unavailable: something outside cove is missing or down.
type UnavailableCode string

// Kind implements Code.
func (UnavailableCode) Kind() Kind { return Unavailable }

func (c UnavailableCode) String() string { return string(c) }

func (UnavailableCode) sealed() {}

// The codes of the kind Unavailable. The comment of each is its documentation for clients.
const (
	// Another program listens on the address. Stop that program, or choose another address with --listen.
	AddressInUse = UnavailableCode("address_in_use")
	// The folder or bucket of backups cannot be read or written. Check its address, the credentials and the room there.
	BackupPlaceUnusable = UnavailableCode("backup_place_unusable")
	// A package could not be built from source. Use a package or version that has wheels.
	BuildFailed = UnavailableCode("build_failed")
	// A check of code ended without a result: its time or memory was used up, or a tool in the sandbox failed. The message has the reason; allow more time or memory.
	CheckFailed = UnavailableCode("check_failed")
	// A tool that looks at code could not be installed in the sandbox. Allow packages to be installed, or install it once while the index can be reached.
	CheckToolMissing = UnavailableCode("check_tool_missing")
	// The server cannot read the content of a changed file. Try again; then have the operator check the disk.
	ContentUnreadable = UnavailableCode("content_unreadable")
	// The version of cove that can read the saved sessions was not kept. Use that version to open them.
	CoveMissing = UnavailableCode("cove_missing")
	// The data folder cannot be used. Make it writable, or set COVE_HOME to another folder.
	DataFolderUnusable = UnavailableCode("data_folder_unusable")
	// The place that data of a library comes from cannot be reached. Name a mirror or a folder with --from.
	DataUnreachable = UnavailableCode("data_unreachable")
	// The database does not answer, is locked or refuses the server. Try again in a moment.
	DatabaseUnavailable = UnavailableCode("database_unavailable")
	// The disk of the machine is full. Make room on the disk, then try again.
	DiskFull = UnavailableCode("disk_full")
	// A process may not open as many files as sandboxes need. Raise the limit of open files (ulimit -n, LimitNOFILE of systemd) to 1024 or more.
	DescriptorsShort = UnavailableCode("descriptors_short")
	// There is no such host, or the host does not answer. Check its name and port.
	DestinationUnreachable = UnavailableCode("destination_unreachable")
	// No Docker daemon answers, which the engine docker needs. Start one, set DOCKER_HOST to its socket, or use the engine gvisor, which needs none.
	DockerAbsent = UnavailableCode("docker_absent")
	// The user may not use the Docker daemon's socket. Use rootless Docker or Podman, or have an administrator put the user into the socket's group, whose members are root on the machine.
	DockerDenied = UnavailableCode("docker_denied")
	// The Docker daemon is too old, is on another machine, or refuses what a sandbox needs. Follow the hint.
	DockerUnfit = UnavailableCode("docker_unfit")
	// The sandbox of the session has given no sign of life for two minutes. Try again; end the session if that goes on.
	GuestSilent = UnavailableCode("guest_silent")
	// The registry of the image cannot be reached, or did not go on. See whether this machine reaches it, or use an image in a file.
	ImageUnreachable = UnavailableCode("image_unreachable")
	// The server is stopping. Try again in a moment.
	Draining = UnavailableCode("draining")
	// The cove program is dynamically linked, which the engine gvisor cannot use. Build cove with CGO_ENABLED=0.
	DynamicBinary = UnavailableCode("dynamic_binary")
	// The system packages could not be installed. Follow the hint, and run the command again.
	SystemPackagesFailed = UnavailableCode("system_packages_failed")
	// The Python environment could not be built. Follow the hint, and run the command again.
	EnvironmentBuildFailed = UnavailableCode("environment_build_failed")
	// The Python that an environment was built on was changed or removed. Run the command again to build a new environment.
	EnvironmentChanged = UnavailableCode("environment_changed")
	// The Python environment is damaged or cannot compile packages. Run `cove doctor`.
	EnvironmentDamaged = UnavailableCode("environment_damaged")
	// Another command works on the same run of an evaluation. Wait for it, or use another folder.
	EvalBusy = UnavailableCode("eval_busy")
	// Many tasks of an evaluation in a row could not be done, and it was stopped. Repair what the message names, and go on with the run.
	EvalStopped = UnavailableCode("eval_stopped")
	// Another process runs the execution. Ask the server or interrupt the command that the message names.
	ExecutionElsewhere = UnavailableCode("execution_elsewhere")
	// A file of the folder grew while the archive was made. Try again.
	FileChanging = UnavailableCode("file_changing")
	// The content of the stored file is on another server. Ask that server.
	FileElsewhere = UnavailableCode("file_elsewhere")
	// The server cannot write to its folder of files. Have the operator check the disk.
	FilesUnwritable = UnavailableCode("files_unwritable")
	// The machine has no free port for reading package indexes. End programs that keep many connections open.
	GatewayFailed = UnavailableCode("gateway_failed")
	// The snapshot needs another version of the sandbox's program than the sandbox was prepared with. Try again.
	GuestDiffers = UnavailableCode("guest_differs")
	// The program that the saved sandbox needs was removed. Start another session.
	GuestMissing = UnavailableCode("guest_missing")
	// The first request with this Idempotency-Key has not been answered. Repeat the request in a moment.
	IdempotencyInProgress = UnavailableCode("idempotency_in_progress")
	// The package index gave an answer that cannot be used. Check the index's address.
	IndexMalformed = UnavailableCode("index_malformed")
	// cove is offline, and what the installation needs was not downloaded before. Switch offline mode off.
	IndexOffline = UnavailableCode("index_offline")
	// The package index cannot be reached or does not work. Check the network and the proxy, then try again.
	IndexUnreachable = UnavailableCode("index_unreachable")
	// The certificate of the package index is not trusted. Set SSL_CERT_FILE to the certificates of your network.
	IndexUntrusted = UnavailableCode("index_untrusted")
	// The authorization server that the operator has named cannot be asked, or its answer is not right. Try again in a moment; keys work meanwhile.
	IssuerUnavailable = UnavailableCode("issuer_unavailable")
	// The process that was to keep the session in memory ended. Try again.
	KeeperFailed = UnavailableCode("keeper_failed")
	// The process that kept the session in memory has ended. Open the session again from its last save.
	KeeperGone = UnavailableCode("keeper_gone")
	// Another process keeps the session in memory. Use the session there, or pause it.
	KeeperLives = UnavailableCode("keeper_lives")
	// The process that keeps the session in memory does not answer. End the process that the message names.
	KeeperSilent = UnavailableCode("keeper_silent")
	// Another version of cove keeps the session in memory. Use that version, or pause the session with it.
	KeeperVersion = UnavailableCode("keeper_version")
	// The Python interpreter has ended, and its variables are lost. Run the code again.
	KernelDied = UnavailableCode("kernel_died")
	// The limit on the memory of the Python interpreter could not be set. Start another kernel.
	KernelLimitFailed = UnavailableCode("kernel_limit_failed")
	// The Python interpreter did not stop and could not be ended. Restart the kernel.
	KernelLost = UnavailableCode("kernel_lost")
	// The interpreter of a session that an older cove has saved cannot do what the request needs. Restart the kernel.
	KernelOld = UnavailableCode("kernel_old")
	// The Python interpreter could not be given new packages. Restart the kernel.
	KernelPathsFailed = UnavailableCode("kernel_paths_failed")
	// The Python interpreter gave an invalid answer at its start. Try again; then run `cove doctor`.
	KernelProtocolError = UnavailableCode("kernel_protocol_error")
	// The Python interpreter ended before it was ready. Run `cove doctor`.
	KernelStartFailed = UnavailableCode("kernel_start_failed")
	// The server cannot accept connections any more and stops. Start the server again.
	ListenerFailed = UnavailableCode("listener_failed")
	// The file from which sessions have a part of their memory was changed on the disk. What the session has computed since is not shown; start it again.
	MemoryChanged = UnavailableCode("memory_changed")
	// The model's answer is longer than cove takes. Ask for less at once, or choose another model.
	ModelAnswerTooLong = UnavailableCode("model_answer_too_long")
	// The model wrote no summary. Ask again.
	ModelEmpty = UnavailableCode("model_empty")
	// The server or command has no model to ask. Configure a model.
	ModelMissing = UnavailableCode("model_missing")
	// The model's provider is overloaded. Try again later, or choose another model.
	ModelOverloaded = UnavailableCode("model_overloaded")
	// The model paused in the middle of its answer. Ask again, or choose another model.
	ModelPaused = UnavailableCode("model_paused")
	// The model service sent an answer that is not one of a model. Check the address of the service.
	ModelStreamMalformed = UnavailableCode("model_stream_malformed")
	// The model's answer ended early. Ask again; no unfinished code was run.
	ModelStreamTruncated = UnavailableCode("model_stream_truncated")
	// The model's summary is too long. Ask again.
	ModelTooLong = UnavailableCode("model_too_long")
	// The model's provider failed to answer. Try again later, or choose another model.
	ModelUnavailable = UnavailableCode("model_unavailable")
	// The model's provider cannot be reached. Check the address of the service and the network.
	ModelUnreachable = UnavailableCode("model_unreachable")
	// No sandbox can be started on the server at the moment. The server goes on trying; its log says why.
	NothingStarts = UnavailableCode("nothing_starts")
	// The package has no wheel for this Python and machine. Allow building from source, or use another package.
	NoWheel = UnavailableCode("no_wheel")
	// The Ollama server has no model. Get one, for example with `ollama pull qwen3`.
	OllamaEmpty = UnavailableCode("ollama_empty")
	// The server has as much to do as it can. Try again in a moment.
	Overloaded = UnavailableCode("overloaded")
	// Other cove processes ended the work of this one, because it did not renew its lease in the database in time. Start it again.
	OwnerLost = UnavailableCode("owner_lost")
	// The package index could not be reached while the Python environment was built. Check the network and the proxy.
	PackageIndexUnreachable = UnavailableCode("package_index_unreachable")
	// The package index does not have a package that cove needs. Use a complete and current index, or another Python.
	PackageUnavailable = UnavailableCode("package_unavailable")
	// cove cannot tell which wheels fit this machine. Run `cove doctor`.
	PlatformUnknown = UnavailableCode("platform_unknown")
	// No usable Python was found. Install Python, or set COVE_PYTHON to its path.
	PythonNotFound = UnavailableCode("python_not_found")
	// The model's turn could not be written to the recording. Check the disk and the permissions of the file.
	RecordFailed = UnavailableCode("record_failed")
	// The session could not be carried over, because a new session does not work. Run `cove doctor`.
	RehearsalFailed = UnavailableCode("rehearsal_failed")
	// No versions of the packages go together, or they could not be resolved. Ask for other versions, or for fewer packages.
	ResolveFailed = UnavailableCode("resolve_failed")
	// Not everything that a command says could be written to its standard output. Make room where that leads to, or lead it elsewhere.
	OutputUnwritten = UnavailableCode("output_unwritten")
	// Not all results were saved in the output folder. Choose another folder with --out, or make room.
	ResultsUnsaved = UnavailableCode("results_unsaved")
	// The folder for running sandboxes cannot be made or used. Set COVE_RUNTIME to a folder that only you can write to.
	RuntimeFolder = UnavailableCode("runtime_folder")
	// The version of cove that can read the saved session failed. See the message for the reason.
	SalvageFailed = UnavailableCode("salvage_failed")
	// The sandbox ended unexpectedly. Run the code again; then run `cove doctor`.
	SandboxDied = UnavailableCode("sandbox_died")
	// The code could not be searched for imports. Try again.
	ScanFailed = UnavailableCode("scan_failed")
	// Encrypted data was changed on the disk, or belongs to another installation. Put it back from a backup.
	SealedDamaged = UnavailableCode("sealed_damaged")
	// Another server uses the data folder. Use that server, or give the second one a folder of its own.
	ServerRunning = UnavailableCode("server_running")
	// The answer did not come from a cove server, or cannot be read. Check the address and any proxy before the server.
	ServerUnexpected = UnavailableCode("server_unexpected")
	// The server does not answer. Check that it runs, and the address.
	ServerUnreachable = UnavailableCode("server_unreachable")
	// The record of the saved session is damaged. Remove the session.
	SessionBroken = UnavailableCode("session_broken")
	// The session is in use by running code. Wait until the code has ended, or interrupt it.
	SessionBusy = UnavailableCode("session_busy")
	// The session is on the disk of another server or command. Ask that server, or continue there.
	SessionElsewhere = UnavailableCode("session_elsewhere")
	// Another process has taken over the session. Nothing has to be done.
	SessionForeign = UnavailableCode("session_foreign")
	// Another process uses the session. Wait until that process has ended.
	SessionInUse = UnavailableCode("session_in_use")
	// The sandbox of the session has ended, and what was not saved is lost. Run the code again from the last save.
	SessionLost = UnavailableCode("session_lost")
	// What listens at the port does not answer in HTTP, or not to the end. Look at what the program says.
	PortBroken = UnavailableCode("port_broken")
	// The session is paused, and the link does not wake it. Use the session, or make a link that wakes it.
	SessionAsleep = UnavailableCode("session_asleep")
	// Somebody else needs the session, as to pause it, so that following or writing to one of its processes ended. Do it again when the session is to go on.
	SessionTaken = UnavailableCode("session_taken")
	// The session could not be saved. The message says what is left of it.
	SessionUnsaved = UnavailableCode("session_unsaved")
	// The folder of saved sessions cannot be read. Check its permissions.
	SessionsUnreadable = UnavailableCode("sessions_unreadable")
	// The folder of saved sessions cannot be written to. Check its permissions and the disk.
	SessionsUnwritable = UnavailableCode("sessions_unwritable")
	// The snapshot of the session is damaged. Return to an earlier snapshot, or remove the session.
	SnapshotDamaged = UnavailableCode("snapshot_damaged")
	// The snapshot has a format that this version of cove cannot read. Use the version that made it.
	SnapshotForeign = UnavailableCode("snapshot_foreign")
	// The session was saved under conditions that do not hold here. Restore those conditions, or use the version that made it.
	SnapshotUnfit = UnavailableCode("snapshot_unfit")
	// The files of the snapshot cannot be read. Check their permissions and the disk.
	SnapshotUnreadable = UnavailableCode("snapshot_unreadable")
	// The engine cannot make its folder for running sandboxes. Set COVE_HOME to a folder that you can write to.
	StateFolder = UnavailableCode("state_folder")
	// The stream of events ended before what it follows. Follow again with Last-Event-ID.
	StreamCut = UnavailableCode("stream_cut")
	// The server ended the stream without a last event. Read the state of the execution or turn.
	StreamEnded = UnavailableCode("stream_ended")
	// A temporary file cannot be written. Make room in the folder for temporary files.
	TempUnusable = UnavailableCode("temp_unusable")
	// A tool that the code called did not do what it was asked for. Look at what it says.
	ToolFailed = UnavailableCode("tool_failed")
	// A tool server does not keep to the protocol, or to the bounds of what it may say. Tell the operator.
	ToolServerInvalid = UnavailableCode("tool_server_invalid")
	// A tool server does not start, cannot be reached, or does not let cove in. Try again in a moment; the operator finds more in the log, and with `cove tools`.
	ToolServerUnreachable = UnavailableCode("tool_server_unreachable")
	// Another process runs the turn. Ask the server or interrupt the command that the message names.
	TurnElsewhere = UnavailableCode("turn_elsewhere")
	// What has come of the upload is on another server. Ask that server, or begin another upload.
	UploadElsewhere = UnavailableCode("upload_elsewhere")
	// Another request still sends bytes of the upload, or makes its file. Ask for the upload in a moment, and go on from its offset.
	UploadInUse = UnavailableCode("upload_in_use")
	// The server ended while the turn ran, or its events were not kept. Ask again.
	TurnLost = UnavailableCode("turn_lost")
	// The machine does not let ordinary users make user namespaces, which the engine gvisor needs. Follow the hint to allow them.
	UserNamespaces = UnavailableCode("user_namespaces")
	// uv is not installed, and Python has no pip to get it. Install uv or pip.
	UVNotFound = UnavailableCode("uv_not_found")
	// The uv on the PATH is a script and cannot be used in a sandbox. Put uv itself on the PATH before the script.
	UVUnusable = UnavailableCode("uv_unusable")
	// The variables of the session could not be carried over. The files of the session were kept.
	VariablesLost = UnavailableCode("variables_lost")
)
