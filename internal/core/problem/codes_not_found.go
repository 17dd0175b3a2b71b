package problem

// NotFoundCode is a code of the kind NotFound: what was named does not exist.
type NotFoundCode string

// Kind implements Code.
func (NotFoundCode) Kind() Kind { return NotFound }

func (c NotFoundCode) String() string { return string(c) }

func (NotFoundCode) sealed() {}

// The codes of the kind NotFound. The comment of each is its documentation for clients.
const (
	// There is no such browser among those that you are signed in with. List them with GET /api/v1/browsers.
	BrowserNotFound = NotFoundCode("browser_not_found")
	// The provider has no connection that was set through the API. List the connections; those of the settings are the operator's.
	ConnectionNotFound = NotFoundCode("connection_not_found")
	// There is no conversation with this id. List the conversations.
	ConversationNotFound = NotFoundCode("conversation_not_found")
	// There is no such data of a library. Run `cove data ls` for what is there; check the spelling for what is fetched.
	DataUnknown = NotFoundCode("data_unknown")
	// The layer with the system packages that the session began with was removed. Run the command again, or start another session.
	SystemPackagesMissing = NotFoundCode("system_packages_missing")
	// The Python environment that the session needs was removed. Start another session.
	EnvironmentMissing = NotFoundCode("environment_missing")
	// There is no execution with this id. List the executions of the session.
	ExecutionNotFound = NotFoundCode("execution_not_found")
	// There is no file or folder at this path, or no stored file with this id. List the files.
	FileNotFound = NotFoundCode("file_not_found")
	// The package index does not have the file that was resolved. Try again, or ask for another version.
	FileUnknown = NotFoundCode("file_unknown")
	// No server or command has registered the data folder in the database. Start the server of that folder.
	HomeNotFound = NotFoundCode("home_not_found")
	// There is no invitation with this id. List the invitations of the project.
	InvitationNotFound = NotFoundCode("invitation_not_found")
	// The session has no kernel with this name. Start the kernel first, or use the main kernel.
	KernelNotFound = NotFoundCode("kernel_not_found")
	// The server has no kernels of that name. Ask for python3, or leave the name out.
	KernelSpecUnknown = NotFoundCode("kernel_spec_unknown")
	// There is no key with this id. List the keys.
	KeyNotFound = NotFoundCode("key_not_found")
	// The packages that the session had installed were removed. Run the code in a new session, which installs what it imports.
	LayerMissing = NotFoundCode("layer_missing")
	// The server does not serve this model. List the models.
	ModelNotFound = NotFoundCode("model_not_found")
	// The model's provider has no model with this name. List the provider's models.
	ModelUnknown = NotFoundCode("model_unknown")
	// The module makes no FastAPI or Flask application that could describe itself. Give the module that makes it.
	NoApplication = NotFoundCode("no_application")
	// The cove process with this id has ended. Nothing has to be done.
	OwnerNotFound = NotFoundCode("owner_not_found")
	// The package is not in the project's list. Run `cove packages ls` to see the list.
	PackageNotListed = NotFoundCode("package_not_listed")
	// The package index has no package with this name. Check the spelling: the name to install can differ from the name to import.
	PackageUnknown = NotFoundCode("package_unknown")
	// The session has no such point to return to; it may have been dropped for newer ones, or was never kept. List the points of the session.
	PointUnknown = NotFoundCode("point_unknown")
	// Nothing listens at that port of the session. Start a server there first; it may take a moment.
	PortRefused = NotFoundCode("port_refused")
	// The session has no process with this id. List the processes of the session; of those that have ended the last are kept.
	ProcessNotFound = NotFoundCode("process_not_found")
	// There is no such program in the session. Check its name, and whether it is in the PATH; a line for the shell needs bash -c.
	ProgramMissing = NotFoundCode("program_missing")
	// There is no project with this id or name. List the projects.
	ProjectNotFound = NotFoundCode("project_not_found")
	// The queue of the conversation has no question with this id, or no longer: it was asked, changed or taken out meanwhile. List the queue and the turns.
	QuestionNotFound = NotFoundCode("question_not_found")
	// The recording of a model cannot be read. Check the path.
	ReplayNotFound = NotFoundCode("replay_not_found")
	// There is nothing at this address. See the documentation of the API.
	RouteNotFound = NotFoundCode("route_not_found")
	// There is no session with this id; it may have been deleted or have expired. Create another session.
	SessionNotFound = NotFoundCode("session_not_found")
	// There is no saved session with this name. Run `cove session ls` to see the sessions.
	SessionUnknown = NotFoundCode("session_unknown")
	// There is no such link to a file or a port of a session: it never was, was withdrawn, or has expired. Ask who sent it for another one.
	LinkNotFound = NotFoundCode("link_not_found")
	// There is no such link to a conversation: it never was, was withdrawn, or has expired. Ask who sent it for another one.
	ShareNotFound = NotFoundCode("share_not_found")
	// There is no such image: not at the registry, for you, or not on this machine. Look at its name and tag, or fetch it with cove image pull.
	ImageMissing = NotFoundCode("image_missing")
	// VolumeNotFound: the project has no such volume.
	VolumeNotFound = NotFoundCode("volume_not_found")
	// The snapshot of the session is not there any more. Return to an earlier snapshot, or remove the session.
	SnapshotMissing = NotFoundCode("snapshot_missing")
	// There is no server of tools with this name, or it is not for this project. List those that are; the operator sets them up.
	ToolServerNotFound = NotFoundCode("tool_server_not_found")
	// The call of a tool does not wait for a user's word: it was decided before, or the code has ended. Look at the execution's events.
	CallNotWaiting = NotFoundCode("call_not_waiting")
	// The code does not wait for this line of input: the request was answered before, or the code has ended. Look at the execution's events.
	InputNotWaiting = NotFoundCode("input_not_waiting")
	// There is no turn with this id. List the turns of the conversation.
	TurnNotFound = NotFoundCode("turn_not_found")
	// There is no upload with this id, or it was dropped or has expired, or its file was deleted. Begin another upload.
	UploadNotFound = NotFoundCode("upload_not_found")
	// There is no user with this id or name, or the user is not a member of the project. List the members.
	UserNotFound = NotFoundCode("user_not_found")
	// The kernel has no variable of this name, or the table that was shown is not in memory any more. Run the code again that makes it.
	VariableUnknown = NotFoundCode("variable_unknown")
)
