package problem

// InvalidCode is a code of the kind Invalid: the caller's input is wrong.
type InvalidCode string

// Kind implements Code.
func (InvalidCode) Kind() Kind { return Invalid }

func (c InvalidCode) String() string { return string(c) }

func (InvalidCode) sealed() {}

// The codes of the kind Invalid. The comment of each is its documentation for clients.
const (
	// The server cannot listen on the address. Check the address and the right to use its port.
	AddressInvalid = InvalidCode("address_invalid")
	// The database has an entry with this name or id already. Use another name.
	AlreadyExists = InvalidCode("already_exists")
	// An archive was asked for in an unknown format. Ask for tar.gz or zip.
	ArchiveFormat = InvalidCode("archive_format")
	// The sizes or the number of runs of a benchmark are out of bounds. Correct what the message names.
	BenchmarkInvalid = InvalidCode("benchmark_invalid")
	// The backup cannot be read to its end, and nothing was restored. Use another backup.
	BackupDamaged = InvalidCode("backup_damaged")
	// The file is not a whole backup of cove, and nothing was restored. Use another file.
	BackupInvalid = InvalidCode("backup_invalid")
	// A newer cove made the backup. Restore the backup with that version or a later one.
	BackupNewer = InvalidCode("backup_newer")
	// There is no backup with this name, or none at all, in the folder or bucket. List the backups with `cove backup ls`.
	BackupNotFound = InvalidCode("backup_not_found")
	// The file is not a whole bundle. Bring it to this machine again, and compare its SHA-256 with what was said when it was made.
	BundleInvalid = InvalidCode("bundle_invalid")
	// The bundle is for another cove, processor or system. Use the program that is in it, or make a bundle on a machine like this one.
	BundleUnfit = InvalidCode("bundle_unfit")
	// The code that called a client's function does not wait for the result any more: it was stopped, the server was restarted, or the results came before. Ask again.
	CallsGone = InvalidCode("calls_gone")
	// The cursor did not come from this list. Start without a cursor, and pass on the cursors of the answers unchanged.
	BadCursor = InvalidCode("bad_cursor")
	// The address of the database is malformed, or the database does not have the encoding UTF8. Correct the setting, or create a database with that encoding.
	BadDatabase = InvalidCode("bad_database")
	// The filter names too many pairs of metadata. Filter by fewer.
	BadFilter = InvalidCode("bad_filter")
	// The number of entries asked for is outside the bounds of a page. Ask for fewer, and follow the cursor.
	BadLimit = InvalidCode("bad_limit")
	// The search query contains no word. Search for words or numbers.
	BadQuery = InvalidCode("bad_query")
	// The request's body is larger than the server takes. Upload data as a file, and read the file in the code.
	BodyTooLarge = InvalidCode("body_too_large")
	// A request for a check of code asks for things that do not go together, or for nothing. Follow the hint.
	CheckInvalid = InvalidCode("check_invalid")
	// The settings of the other program cannot be added to. Add what the message shows to them yourself.
	ClientSettings = InvalidCode("client_settings")
	// The list of distributions to install is empty or contradicts itself. Report this as a fault of cove.
	ClosureInvalid = InvalidCode("closure_invalid")
	// The code cannot be parsed as Python. Correct what the message names, and check the code again.
	CodeInvalid = InvalidCode("code_invalid")
	// The rules for code do not let the code run. Take another way; an administrator can change the rules of the project.
	CodeRefused = InvalidCode("code_refused")
	// The rules for code have a policy or a rule that there is not. Use those that the message lists.
	CodeRulesInvalid = InvalidCode("code_rules_invalid")
	// The instructions of a project are too long, or not text.
	InstructionsInvalid = InvalidCode("instructions_invalid")
	// The program is longer than cove runs. Put data into a file, and read the file in the program.
	CodeTooBig = InvalidCode("code_too_big")
	// The code of the request is longer than the server takes. Put data into a file, and read the file in the code.
	CodeTooLarge = InvalidCode("code_too_large")
	// Somebody has to look at the code before it runs. Send it again with "approved": true when somebody has.
	CodeUnapproved = InvalidCode("code_unapproved")
	// A setting has a value that cove cannot use. Correct the setting that the message names.
	ConfigInvalid = InvalidCode("config_invalid")
	// The configuration file has a setting that cove does not know. Run `cove config` to see every setting.
	ConfigUnknownKey = InvalidCode("config_unknown_key")
	// The configuration file cannot be read. Check its path and permissions.
	ConfigUnreadable = InvalidCode("config_unreadable")
	// The connection to a model service is not valid: its provider, address, key or models. Correct the field that the message names.
	ConnectionInvalid = InvalidCode("connection_invalid")
	// The conversation has no turns yet. Ask a question in it first.
	ConversationEmpty = InvalidCode("conversation_empty")
	// The new conversation has a field that the server cannot take. Correct the field that the message names.
	ConversationInvalid = InvalidCode("conversation_invalid")
	// The conversation has grown larger than a new turn can start from. Start another conversation, and bring pictures and data as files.
	ConversationTooLarge = InvalidCode("conversation_too_large")
	// The cursor is not the id of an audit row. Start without a cursor, and pass on the cursors of the answers unchanged.
	CursorInvalid = InvalidCode("cursor_invalid")
	// The name of a library's data is not one, or the place that data comes from is not said. Write LIBRARY:NAME, as `cove data add --help` shows.
	DataInvalid = InvalidCode("data_invalid")
	// A server or a command uses the database, which has to be used by nobody for this. End it, and try again.
	DatabaseInUse = InvalidCode("database_in_use")
	// A newer cove made the database. Use that version or a later one, or name another database.
	DatabaseNewer = InvalidCode("database_newer")
	// The database to restore into has rows already. Name an empty database.
	DatabaseNotEmpty = InvalidCode("database_not_empty")
	// No database is configured. Name a file or a PostgreSQL address in the setting database.
	DatabaseUnnamed = InvalidCode("database_unnamed")
	// The debug listener would be open to other machines. Use a loopback address, such as 127.0.0.1:6060.
	DebugNotLocal = InvalidCode("debug_not_local")
	// The encryption key is not one that cove has made. Make one with `cove encryption key new`, and name its file.
	EncryptionKeyInvalid = InvalidCode("encryption_key_invalid")
	// Data is encrypted with a key that is not set. Set the encryption key that the message names; nothing was changed.
	EncryptionKeyMissing = InvalidCode("encryption_key_missing")
	// The data keys beside the encrypted data are damaged. Put them back from a backup.
	EncryptionRingDamaged = InvalidCode("encryption_ring_damaged")
	// There is data that is not encrypted yet, although a key is set. Run `cove encryption on` while no server runs.
	EncryptionUnfinished = InvalidCode("encryption_unfinished")
	// The engine cannot save sessions. Use the engine gvisor, or do without saved sessions.
	EngineCannotSave = InvalidCode("engine_cannot_save")
	// No engine has this name. Choose gvisor, docker or local.
	EngineUnknown = InvalidCode("engine_unknown")
	// This is no name of a Debian package. packages.system has names such as graphviz.
	SystemPackageName = InvalidCode("system_package_name")
	// There is no Debian package of this name. Correct packages.system, or have the package sources of the machine name where it is.
	SystemPackageUnknown = InvalidCode("system_package_unknown")
	// System packages are for machines with Debian or its kin. Install the programs on the machine itself.
	SystemPackagesUnsupported = InvalidCode("system_packages_unsupported")
	// No package set has this name. Choose one of those that the message lists.
	EnvironmentUnknown = InvalidCode("environment_unknown")
	// No task of an evaluation is left to run. Give files with tasks, and loosen what chooses among them.
	EvalEmpty = InvalidCode("eval_empty")
	// The folder of an evaluation's run cannot be read or written. Name another folder.
	EvalFolder = InvalidCode("eval_folder")
	// A file with tasks is not what its format says. Correct the line that the message names, or name the format.
	EvalFormat = InvalidCode("eval_format")
	// The folder has a run of other tasks, another model or other settings. Give the same ones, or another folder.
	EvalOther = InvalidCode("eval_other")
	// A bound of the cost needs the model's prices. Set them in models.about.
	EvalUnpriced = InvalidCode("eval_unpriced")
	// An event does not have the form of its type. Update the older of client and server.
	EventInvalid = InvalidCode("event_invalid")
	// An event has an unknown type. Ignore the event, or update the client.
	EventUnknown = InvalidCode("event_unknown")
	// The branch is larger than one document can be. Export an earlier turn of it.
	ExportTooLarge = InvalidCode("export_too_large")
	// A file or folder with this name exists already. Choose another name, or remove the existing one.
	FileExists = InvalidCode("file_exists")
	// The session was saved by an older cove, whose sandboxes show their workspace alone. Make a new session.
	FilesAbsent = InvalidCode("files_absent")
	// The output file cannot be written. Check its folder and permissions.
	FileUnwritable = InvalidCode("file_unwritable")
	// A key stands for the holder's access tokens already. Revoke that key first.
	HolderExists = InvalidCode("holder_exists")
	// The text is not an id, a number or a word that the history knows. Run `cove history` to see what it has.
	IDInvalid = InvalidCode("id_invalid")
	// The idempotency key is too long. Use at most 255 characters.
	IdempotencyKey = InvalidCode("idempotency_key")
	// The idempotency key was used for another request. Use a new key for each new request.
	IdempotencyMismatch = InvalidCode("idempotency_mismatch")
	// The model cannot see images. Leave images out, or choose another model.
	ImagesUnsupported = InvalidCode("images_unsupported")
	// The settings of a package index are wrong. Correct them in the settings of cove, uv or pip that the message names.
	IndexSettingsInvalid = InvalidCode("index_settings_invalid")
	// Two input files would have the same name in the workspace. Rename one of them.
	InputDuplicate = InvalidCode("input_duplicate")
	// The input for the model is empty. Send the user's words.
	InputEmpty = InvalidCode("input_empty")
	// The input cannot be copied into the workspace. Name ordinary files and folders whose names are valid UTF-8.
	InputRefused = InvalidCode("input_refused")
	// An input file or standard input cannot be read. Check the path and permissions.
	InputUnreadable = InvalidCode("input_unreadable")
	// The request's body cannot be read. Send complete and well-formed JSON, or a complete form.
	InvalidBody = InvalidCode("invalid_body")
	// The days are malformed, or span too long. Write days like 2026-11-21, and ask for fewer.
	InvalidDay = InvalidCode("invalid_day")
	// The path cannot name a file or folder of the workspace. Correct the path.
	InvalidPath = InvalidCode("invalid_path")
	// A field, parameter or header of the request is wrong. Correct those that `errors` lists or the message names.
	InvalidRequest = InvalidCode("invalid_request")
	// The path names a folder, and a file was expected. List the folder, or download it as an archive.
	IsFolder = InvalidCode("is_folder")
	// A cove process sent a malformed request to the process that keeps the session in memory. Use one version of cove for both.
	KeeperRequest = InvalidCode("keeper_request")
	// The session has a kernel with this name already. Choose another name.
	KernelExists = InvalidCode("kernel_exists")
	// The main kernel cannot be stopped. Restart it, or delete the session.
	KernelMain = InvalidCode("kernel_main")
	// The text cannot be the name of a kernel. Use 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or a digit.
	KernelName = InvalidCode("kernel_name")
	// The main kernel cannot be stopped. Restart it instead.
	KernelNeeded = InvalidCode("kernel_needed")
	// The text is not a whole API key. Copy the whole key.
	KeyMalformed = InvalidCode("key_malformed")
	// The change would leave the server without an admin. Make another user an admin first.
	LastAdmin = InvalidCode("last_admin")
	// The change would leave a project without an owner. Make another member an owner first.
	LastOwner = InvalidCode("last_owner")
	// The lifetime of the key is out of bounds. Choose a time from now on and at most 100 years ahead.
	LifeInvalid = InvalidCode("life_invalid")
	// The lock file of the packages is not one that cove wrote. Run `cove packages lock` to write it again.
	LockInvalid = InvalidCode("lock_invalid")
	// The user is a member of the project already. Change the role instead.
	MemberExists = InvalidCode("member_exists")
	// A message of the conversation cannot be read. Correct the message.
	MessageInvalid = InvalidCode("message_invalid")
	// The address does not support this HTTP method. Use one of the methods in the header Allow.
	MethodNotAllowed = InvalidCode("method_not_allowed")
	// The address of the model service is wrong. Set it to the full URL of the service.
	ModelBaseURL = InvalidCode("model_base_url")
	// The text does not name a model. Write PROVIDER/NAME, for example openai/gpt-5.5.
	ModelName = InvalidCode("model_name")
	// Several models can be used, and none was named. Name one of them.
	ModelNotNamed = InvalidCode("model_not_named")
	// No provider of models has this name. Use openai, anthropic or ollama.
	ModelProvider = InvalidCode("model_provider")
	// The model's provider rejected the request as invalid. Check the model's name and parameters.
	ModelRequestRejected = InvalidCode("model_request_rejected")
	// The engine cannot show a folder in its sandboxes because the folder is not on this machine. Use an engine that can.
	MountUnusable = InvalidCode("mount_unusable")
	// The name has bytes that a name cannot have, or is too long, or looks like an id. Choose another name.
	NameInvalid = InvalidCode("name_invalid")
	// The name in the output folder is taken by something else. Choose another folder with --out, or remove what is there.
	NameTaken = InvalidCode("name_taken")
	// The sandbox has no network that could be opened. Use the engine gvisor, and a session that this version of cove has made.
	NetworkAbsent = InvalidCode("network_absent")
	// A rule for the network names neither a host nor a network of addresses, or a port that is none. Correct the rule that the message names.
	NetworkRule = InvalidCode("network_rule")
	// No language model is configured. Set up one of those that the hint lists; code runs without a model.
	NoModel = InvalidCode("no_model")
	// The path names a file, and a folder was expected. Download the file instead.
	NotAFolder = InvalidCode("not_a_folder")
	// The variable is not a table, or is too large to be sorted and searched. Only DataFrames, Series and arrays of one or two dimensions are tables.
	NotATable = InvalidCode("not_a_table")
	// The folder is not empty. Remove its content first, or ask for all of it to be removed.
	NotEmpty = InvalidCode("not_empty")
	// The file is not a notebook of a format that is known. Save it anew with Jupyter, or give a file with Python code.
	NotebookInvalid = InvalidCode("notebook_invalid")
	// The turn or conversation ran no code. Choose one that did.
	NothingRan = InvalidCode("nothing_ran")
	// The session has no earlier snapshot to return to. Nothing was changed.
	NothingToUndo = InvalidCode("nothing_to_undo")
	// An allowed origin of the server is malformed. Write origins like https://example.com.
	OriginInvalid = InvalidCode("origin_invalid")
	// The output folder is the path of a file. Choose another folder with --out.
	OutNotAFolder = InvalidCode("out_not_a_folder")
	// The output folder cannot be used. Check its permissions, or choose another folder with --out.
	OutUnusable = InvalidCode("out_unusable")
	// The list of packages is empty or too long, or has a text that is not a requirement. Write a package's name, and versions if needed.
	PackageName = InvalidCode("package_name")
	// The number of entries asked for is outside the bounds of a page. Ask for 1 to 100 entries.
	PageLimit = InvalidCode("page_limit")
	// The model's provider does not take this parameter. Leave the parameter out.
	ParameterUnknown = InvalidCode("parameter_unknown")
	// The password is too short, too long, or too easy to guess. Take 10 to 200 characters, such as a few words that do not belong together.
	PasswordInvalid = InvalidCode("password_invalid")
	// The server's engine cannot save sessions, so the session cannot be paused, forked or undone. Have the operator configure the engine gvisor.
	PauseUnsupported = InvalidCode("pause_unsupported")
	// The file changed, and the conditions of the request do not hold. Read the file again, then repeat the request with its new ETag.
	PreconditionFailed = InvalidCode("precondition_failed")
	// The process has ended, or takes no input. Start another; with "input" it can be written to.
	ProcessEnded = InvalidCode("process_ended")
	// A process cannot be started like that, or gets no such signal or size. Correct what the message names.
	ProcessInvalid = InvalidCode("process_invalid")
	// The session was saved by an older cove, whose sandboxes have no processes. Make a new session.
	ProcessesAbsent = InvalidCode("processes_absent")
	// The program that was to be measured or described failed when it ran. The message has what it said last; correct the program, or give it its files.
	ProgramFailed = InvalidCode("program_failed")
	// A project with this name exists already. Choose another name.
	ProjectExists = InvalidCode("project_exists")
	// The Python that was named does not exist or cannot be used. Name another one in COVE_PYTHON.
	PythonUnusable = InvalidCode("python_unusable")
	// The quota is not an object of numbers that are 0 or more. Correct the quota.
	QuotaInvalid = InvalidCode("quota_invalid")
	// The file does not have the range of bytes. See Content-Range for the file's size.
	RangeInvalid = InvalidCode("range_invalid")
	// The session was saved by an older cove, which cannot end all that runs in one. Pause it with its memory, or make a new session.
	RebootAbsent = InvalidCode("reboot_absent")
	// There is no such kind of things to be redacted. Use those that the message lists.
	RedactionInvalid = InvalidCode("redaction_invalid")
	// The file is not a recording of a model. Record the conversation again.
	ReplayInvalid = InvalidCode("replay_invalid")
	// The conversation differs from the recording. Use a real model, or record the conversation again.
	ReplayMismatch = InvalidCode("replay_mismatch")
	// The connection ended before the whole request arrived. Send the request again.
	RequestIncomplete = InvalidCode("request_incomplete")
	// The request's JSON is too large, too deep or has too many values. Send less at once, or send data as a file.
	RequestTooComplex = InvalidCode("request_too_complex")
	// The request is larger than the server takes. Send less at once, or upload data as a file.
	RequestTooLarge = InvalidCode("request_too_large")
	// The text is not a list of requirements that cove reads. Write one package's name per line, with versions if needed.
	RequirementInvalid = InvalidCode("requirement_invalid")
	// The list of the project's packages cannot be read. Check its path and permissions.
	RequirementsUnreadable = InvalidCode("requirements_unreadable")
	// No role has this name. Choose owner, admin, member, viewer or auditor.
	RoleUnknown = InvalidCode("role_unknown")
	// The session has no root. Make one with root where the server's operator allows that, with the engine gvisor.
	RootAbsent = InvalidCode("root_absent")
	// The text names no image. Write one of a registry as python:3.12-slim, or oci-archive:FILE, docker-archive:FILE or oci:FOLDER.
	ImageReference = InvalidCode("image_reference")
	// The image is made for other machines, or is not one image. Choose one for this machine's processor.
	ImageUnfit = InvalidCode("image_unfit")
	// The image, or what says of what it is, is not what its digests say, or has what cannot be unpacked safely. Fetch or make it again.
	ImageDamaged = InvalidCode("image_damaged")
	// The image has more bytes, files or layers than the operator allows. Use a smaller one.
	ImageTooLarge = InvalidCode("image_too_large")
	// A sandbox has the image. End the session that it belongs to.
	ImageUsed = InvalidCode("image_used")
	// VolumesAbsent: there are no volumes on this server.
	VolumesAbsent = InvalidCode("volumes_absent")
	// VolumeInvalid: a volume cannot have that name, or a session cannot have it there.
	VolumeInvalid = InvalidCode("volume_invalid")
	// VolumeExists: the project has a volume of that name.
	VolumeExists = InvalidCode("volume_exists")
	// VolumeUsed: sessions have the volume.
	VolumeUsed = InvalidCode("volume_used")
	// VolumeChanged: what programs of a saved session have open in a volume is not there any more.
	VolumeChanged = InvalidCode("volume_changed")
	// VolumeElsewhere: the volume is on another server's disk.
	VolumeElsewhere = InvalidCode("volume_elsewhere")
	// The code is too long to be searched for imports. Install the packages by name before.
	ScanTooLarge = InvalidCode("scan_too_large")
	// No scope has this name. Choose among those that the hint lists.
	ScopeUnknown = InvalidCode("scope_unknown")
	// The file with the server's secret is damaged. Restore the file from a backup, or remove it.
	SecretDamaged = InvalidCode("secret_damaged")
	// The text is not the address of a server. Write it like http://localhost:8700.
	ServerAddress = InvalidCode("server_address")
	// The session is closed. Open it again, or use another session.
	SessionClosed = InvalidCode("session_closed")
	// The session was made with another engine. Use that engine for it.
	SessionEngine = InvalidCode("session_engine")
	// A session with this name exists already. Choose another name, or remove that session first.
	SessionExists = InvalidCode("session_exists")
	// The session is in memory already, so it cannot be opened a second time. Use the session that is in memory.
	SessionInMemory = InvalidCode("session_in_memory")
	// The new session has a field that the server cannot take. Correct the field that the message names.
	SessionInvalid = InvalidCode("session_invalid")
	// The session would have more memory than the server allows. Ask for less memory.
	SessionMemory = InvalidCode("session_memory")
	// The text cannot be the name of a session. Use 1 to 63 lower-case letters, digits, dots, dashes and underscores, beginning with a letter or a digit.
	SessionName = InvalidCode("session_name")
	// The session did not begin from this image. Leave --image out, or use another session.
	SessionImage = InvalidCode("session_image")
	// The session was made with another package set. Leave --packages out, or use another session.
	SessionPackages = InvalidCode("session_packages")
	// The files of the session cannot be changed from outside its code. Change them in code.
	SessionUnchangeable = InvalidCode("session_unchangeable")
	// What is to be shared is larger than a link can show. Share fewer turns, or leave out the code and its output.
	ShareTooLarge = InvalidCode("share_too_large")
	// The server's certificate and key cannot be used. Check both files.
	TLSInvalid = InvalidCode("tls_invalid")
	// The tool choice of the request is unknown or names a tool that is not offered. Correct the tool choice.
	ToolChoiceInvalid = InvalidCode("tool_choice_invalid")
	// A function of the request has an invalid name or invalid parameters. Correct the function.
	ToolInvalid = InvalidCode("tool_invalid")
	// A function has the name of the code interpreter. Give the function another name.
	ToolNameTaken = InvalidCode("tool_name_taken")
	// The model cannot call functions. Leave the functions out, or choose another model.
	ToolsUnsupported = InvalidCode("tools_unsupported")
	// The settings for traces are wrong. Correct the OTEL variable that the message names.
	TracesInvalid = InvalidCode("traces_invalid")
	// The new turn has fields that exclude each other, or too many files. Correct the field that the message names.
	TurnInvalid = InvalidCode("turn_invalid")
	// The file cannot be shown: it is broken, or takes more time or memory than a look at it may. Download it, or read it with code.
	NotShown = InvalidCode("not_shown")
	// A config file is there already. Edit it, or change single settings.
	ConfigExists = InvalidCode("config_exists")
	// No code of the turn waits for approval, or other code than the step names: it was decided before, or the turn has ended. Look at the turn.
	TurnNotWaiting = InvalidCode("turn_not_waiting")
	// Another request changed the question in the queue meanwhile. Read the queue, and change the question again.
	QuestionChanged = InvalidCode("question_changed")
	// The question has more than 1 MiB with its settings, which is what can wait in a queue. Send what is long as a file.
	QuestionTooLarge = InvalidCode("question_too_large")
	// The conversation has a turn that has not ended. Wait for its end, cancel it, or start another conversation.
	TurnRunning = InvalidCode("turn_running")
	// The request's body has a media type that the address does not take. Send Content-Type: application/json.
	UnsupportedMediaType = InvalidCode("unsupported_media_type")
	// The request brings more bytes than the upload was begun for; none of them was kept. Send what is missing, or begin another upload.
	UploadExceeded = InvalidCode("upload_exceeded")
	// The request does not begin where the upload ends. Send the bytes from the offset that the message and the header Upload-Offset tell.
	UploadOffset = InvalidCode("upload_offset")
	// The command line is wrong. Run the command with --help.
	Usage = InvalidCode("usage")
	// The address is a WebSocket. Connect with a client of WebSockets.
	UpgradeNeeded = InvalidCode("upgrade_needed")
	// A user with this name exists already. Choose another name.
	UserExists = InvalidCode("user_exists")
	// The user stands for the commands on the server's machine and cannot be changed or removed. Choose another user.
	UserLocal = InvalidCode("user_local")
	// The session's code gave an unusable list of its variables. Restart the kernel if this stays so.
	VariablesInvalid = InvalidCode("variables_invalid")
	// A wheel does not follow the format of wheels and cannot be installed. Ask for another version.
	WheelInvalid = InvalidCode("wheel_invalid")
)
